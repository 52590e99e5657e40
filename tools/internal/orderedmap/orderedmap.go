// Package orderedmap stands in for github.com/wk8/go-ordered-map/v2 where genkit
// and Anthropic's SDK are built together, as the modules of this repository are:
// it is its fork github.com/pb33f/ordered-map/v2 under its name.
//
// The dotprompt that genkit v1.7.0 needs puts maps of the one into schemas of
// github.com/invopop/jsonschema, which has the other since v0.14.0. The root
// module requires v0.13.0, so that genkit builds beside it as it is; Anthropic's
// SDK needs v0.14.0. Only replace directives lead here.
package orderedmap

import orderedmap "github.com/pb33f/ordered-map/v2"

type (
	// OrderedMap is the fork's.
	OrderedMap[K comparable, V any] = orderedmap.OrderedMap[K, V]
	// Pair is the fork's.
	Pair[K comparable, V any] = orderedmap.Pair[K, V]
	// InitOption is the fork's.
	InitOption[K comparable, V any] = orderedmap.InitOption[K, V]
	// KeyNotFoundError is the fork's.
	KeyNotFoundError[K comparable] = orderedmap.KeyNotFoundError[K]
)

// New is the fork's.
func New[K comparable, V any](options ...any) *OrderedMap[K, V] {
	return orderedmap.New[K, V](options...)
}

// WithCapacity is the fork's.
func WithCapacity[K comparable, V any](capacity int) InitOption[K, V] {
	return orderedmap.WithCapacity[K, V](capacity)
}

// WithInitialData is the fork's.
func WithInitialData[K comparable, V any](data ...Pair[K, V]) InitOption[K, V] {
	return orderedmap.WithInitialData(data...)
}
