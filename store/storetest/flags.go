package storetest

import (
	"github.com/settle-go/settle/store"
)

func flags(s suite) {
	flag := func(f uint8) func(*store.Change) { return func(c *store.Change) { c.Flags = f } }

	s.test("R47FlagsAreAddedWhateverTheMove", func(w *world) {
		o := w.standing(w.intent(), store.Manual)
		want(w, "the flags", o.Flags, 0)
		var wanted uint8
		for _, c := range []struct {
			to   store.State
			flag uint8
		}{
			{store.Manual, store.FlagAttached}, {store.Manual, 0}, {store.Unknown, store.FlagAttached},
			{store.Completed, store.FlagOversize}, {store.Completed, store.FlagUnencodable}, {store.Completed, 0},
		} {
			o = w.apply(Change(o, c.to, flag(c.flag)))
			wanted |= c.flag
			want(w, "the flags", o.Flags, wanted)
			want(w, "the flags as read", w.read(o).Flags, wanted)
		}
	})
	s.test("R25AnAttachedAnswerStaysAttached", func(w *world) {
		o := w.apply(Change(w.standing(w.intent(), store.Manual), store.Manual, flag(store.FlagAttached)))
		o = w.apply(Change(o, store.Retryable))
		o = w.apply(Attempt(o))
		o = w.apply(Change(o, store.Manual))
		want(w, "the flags", w.read(o).Flags, store.FlagAttached)
	})
	s.test("R48TheTraceOfTheLastAttemptIsKept", func(w *world) {
		o := w.record(w.intent())
		first := o.Trace
		o = w.apply(Change(o, store.Unknown))
		want(w, "the trace", string(w.read(o).Trace), string(first))
		ended := Bytes(25)
		o = w.apply(Completion(o, "r-1", func(c *store.Change) { c.Trace = ended }))
		want(w, "the trace", string(o.Trace), string(ended))
		o = w.apply(Change(o, store.Completed))
		want(w, "the trace", string(w.read(o).Trace), string(ended))
	})
	s.test("R48AnAttemptsOwnTraceReplacesTheOneBefore", func(w *world) {
		o := w.standing(w.intent(), store.Retryable)
		c := Attempt(o)
		o = w.apply(c)
		want(w, "the trace", string(w.read(o).Trace), string(c.Start.Trace))
	})
}
