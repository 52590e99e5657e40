// Package floors holds the tests of the tree as a whole: which package may
// import which, which modules are depended on, and what no file may contain.
package floors
