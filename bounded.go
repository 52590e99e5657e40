package settle

import "sync"

// bounded is a map that forgets: it holds at most twice size entries, and drops
// the older half of them, those not used since the last drop, when it is full.
// What it remembers only ever saves work; it decides nothing.
type bounded[K comparable, V any] struct {
	mu         sync.Mutex
	size       int
	young, old map[K]V
}

func newBounded[K comparable, V any](size int) *bounded[K, V] {
	return &bounded[K, V]{size: size, young: map[K]V{}, old: map[K]V{}}
}

func (b *bounded[K, V]) get(k K) (V, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if v, ok := b.young[k]; ok {
		return v, true
	}
	v, ok := b.old[k]
	if ok {
		b.put(k, v)
	}
	return v, ok
}

func (b *bounded[K, V]) has(k K) bool {
	_, ok := b.get(k)
	return ok
}

func (b *bounded[K, V]) set(k K, v V) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.put(k, v)
}

func (b *bounded[K, V]) put(k K, v V) {
	if len(b.young) >= b.size {
		b.old, b.young = b.young, make(map[K]V, b.size/4)
	}
	b.young[k] = v
}
