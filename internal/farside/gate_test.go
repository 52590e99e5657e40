package farside

import "testing"

func TestReleasedGateLetsThroughAlthoughTheFarSideCloses(t *testing.T) {
	t.Parallel()
	closing := make(chan struct{})
	close(closing)
	g := NewGate()
	if g.wait(closing) {
		t.Fatal("a closed gate let a request through")
	}
	g.Release()
	for range 100 { // select picks at random among what is ready
		if !g.wait(closing) {
			t.Fatal("a released gate held a request back")
		}
	}
	for range maxAtGate { // nobody reads: must not block
		g.wait(closing)
	}
	if n := len(g.Entered()); n != maxAtGate {
		t.Fatalf("expected %d arrivals to be kept, got %d", maxAtGate, n)
	}
}
