// Package arguments is what tools that are declared rather than programmed
// share: which fields a declaration may name, and their values in a call.
//
// Beside the fields of the arguments a declaration may name a few facts of the
// operation, such as its key, under names that no field may have ([Facts]).
package arguments
