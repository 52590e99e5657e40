// Package schema turns the Go type of a tool's arguments, or a JSON Schema that
// came with a tool, into what settle needs of it: the schema that a model is
// shown, the one that arguments are validated against, and the shape by which
// their values are compared (R16).
//
// [Of] reads a Go type, [Parse] a JSON Schema, [Results] the Go type of a
// result. All three report every problem at once, each with its field's path and
// with what to do, so that a tool that can't work is refused when the executor
// is built and not when a model calls it.
//
// [Schema.Validate] and [Decode] run before an operation is claimed: what they
// refuse has had no effect. Their errors name fields and rules and never hold a
// value (R55).
//
// Which Go type becomes what, and what the providers' strict modes are promised,
// is written down in docs/schema.md.
package schema
