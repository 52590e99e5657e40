package idempotency_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/store"
	"github.com/settle-go/settle/tools/idempotency"
)

// What the wire does: clients that go, uploads that break, answers that stream.

func TestBodyCutOffInMidUploadDoesNothing(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "POST /payments HTTP/1.1\r\nHost: x\r\nAuthorization: ann\r\nContent-Type: application/json\r\nIdempotency-Key: \"k\"\r\nContent-Length: 100\r\n\r\n{\"amount\":")
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := read(resp)
	if err != nil || got.status != 400 {
		t.Fatalf("%+v, %v", got, err)
	}
	s.isProblem(got, "body-incomplete")
	s.ask(404, "k")
	s.runs(0)
	s.pay(201, "k", `{"amount":"anything"}`)
}

// R24: a client that hangs up doesn't end what it began.
func TestR24ClientThatIsGoneFindsTheOutcome(t *testing.T) {
	t.Parallel()
	entered, gone := make(chan struct{}), make(chan struct{})
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-gone
		if err := r.Context().Err(); err != nil {
			t.Errorf("the handler's context ended with the client: %v", err)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(201)
		w.Write(body)
	})
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		resp, err := s.server.Client().Do(s.request("k", `{"amount":1}`).WithContext(ctx))
		if err == nil {
			resp.Body.Close()
		}
		failed <- err
	}()
	<-entered
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Fatalf("the client got %v", err)
	}
	close(gone)
	for s.ask(200, "k")["status"] == "in_progress" {
	}
	if got := s.pay(201, "k", `{"amount":1}`); got.body != `{"amount":1}` || got.header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("it finds %+v", got)
	}
	s.runs(1)
}

func TestR24InterruptibleHandlerEndsWithItsClient(t *testing.T) {
	t.Parallel()
	c := unsafe
	c.Interruptible = true
	entered, ended := make(chan struct{}), make(chan struct{})
	s := serve(t, c, func(_ http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		idempotency.NothingHappened(r.Context())
		close(ended)
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if resp, err := s.server.Client().Do(s.request("k", `{}`).WithContext(ctx)); err == nil {
		resp.Body.Close()
		t.Error("the client got an answer")
	}
	select {
	case <-ended:
	case <-time.After(9 * time.Second):
		t.Error("the handler's context outlived its client")
	}
}

// A body of two MiB goes through a file, which is gone afterwards.
func TestLargeBodiesGoThroughAFile(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	large := bytes.Repeat([]byte("0123456789abcdef"), 2<<20/16)
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		sum := sha256.New()
		n, err := io.Copy(sum, r.Body)
		fmt.Fprintf(w, "%d %v %x", n, err, sum.Sum(nil))
	}, func(o *idempotency.Options) { o.MaxBody = 4 << 20 })
	octets := func(r *http.Request) { r.Header.Set("Content-Type", "application/octet-stream") }
	first := s.pay(200, "k", string(large), octets)
	if want := fmt.Sprintf("%d <nil> %x", len(large), sha256.Sum256(large)); first.body != want {
		t.Errorf("the handler read %s, want %s", first.body, want)
	}
	s.replayed(first, "k", string(large), octets)
	s.refused(422, "key-reused", "k", string(large[1:]), octets)
	s.refused(413, "body-too-large", "k", string(large)+string(large)+"x", octets)
	chunked := func(r *http.Request) { octets(r); r.ContentLength = -1 }
	s.refused(413, "body-too-large", "k", string(large)+string(large)+"x", chunked)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("files are left: %v, %v", left, err)
	}
	s.runs(1)
}

// JSON that is too long to be compared as values counts byte for byte.
func TestLongJSONCountsByteForByte(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, created())
	long := `{"text":"` + strings.Repeat("x", 300<<10) + `"}`
	s.replayed(s.pay(201, "k", long), "k", long)
	s.refused(422, "key-reused", "k", " "+long)
	s.runs(1)
}

func TestFormsWithFilesLeaveNothingBehind(t *testing.T) {
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("scan", "scan.png")
	if err == nil {
		_, err = part.Write(bytes.Repeat([]byte("x"), 100<<10))
	}
	if err = errors.Join(err, form.Close()); err != nil {
		t.Fatal(err)
	}
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(10); err != nil {
			t.Error(err)
		}
		fmt.Fprint(w, r.MultipartForm.File["scan"][0].Size)
	})
	got := s.pay(200, "k", body.String(), func(r *http.Request) { r.Header.Set("Content-Type", form.FormDataContentType()) })
	if left, err := os.ReadDir(temp); got.body != fmt.Sprint(100<<10) || err != nil || len(left) > 0 {
		t.Errorf("got %s, and left %v, %v", got.body, left, err)
	}
}

// A handler that flushes is heard at once, and replayed in one piece.
func TestFlushSendsAtOnceAndIsReplayedWhole(t *testing.T) {
	t.Parallel()
	heard := make(chan struct{})
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-heard
		io.WriteString(w, "data: 2\n\n")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		if err := http.NewResponseController(w).SetWriteDeadline(time.Now()); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("a deadline: %v, want ErrNotSupported", err)
		}
		if _, ok := w.(http.Hijacker); ok {
			t.Error("the connection can be taken")
		}
	})
	resp, err := s.server.Client().Do(s.request("k", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	begin := make([]byte, 9)
	if _, err := io.ReadFull(resp.Body, begin); err != nil || string(begin) != "data: 1\n\n" {
		t.Fatalf("heard %q, %v", begin, err)
	}
	close(heard)
	first, err := read(resp)
	if err != nil || first.body != "data: 2\n\n" || first.header.Get("Idempotency-Status") != "" || first.header.Get("Idempotency-Operation") == "" {
		t.Fatalf("%+v, %v", first, err)
	}
	first.body = "data: 1\n\ndata: 2\n\n"
	s.replayed(first, "k", `{}`)
	s.runs(1)
}

func TestReplayOfPiecesHasTheTypeOfTheFirst(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<ht")
		w.(http.Flusher).Flush()
		io.WriteString(w, "ml>")
	})
	first := s.pay(200, "k", `{}`)
	if kind := first.header.Get("Content-Type"); kind != "text/plain; charset=utf-8" {
		t.Errorf("the first answer is %q", kind)
	}
	s.replayed(first, "k", `{}`)
}

// A stream that breaks must not look whole to anybody.
func TestStreamThatBreaksIsCutAndUnknown(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "begin")
		w.(http.Flusher).Flush()
		panic("in the middle")
	})
	resp, err := s.server.Client().Do(s.request("k", `{}`))
	if err == nil {
		_, err = read(resp)
	}
	if err == nil {
		t.Error("the client took the stream for a whole one")
	}
	s.refused(409, "outcome-unknown", "k", `{}`)
	s.runs(1)
}

// What is too long to be kept is answered whole once, and by reference later.
func TestR47LongAnswersAreReplayedByReference(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 100)
	s := serve(t, unsafe, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/payments/1")
		idempotency.SetResource(r.Context(), "pay_1")
		w.WriteHeader(201)
		for range 10 {
			io.WriteString(w, long)
		}
	}, func(o *idempotency.Options) { o.MaxResponse = 2500 })
	if got := s.pay(201, "k", `{}`); got.body != strings.Repeat(long, 10) {
		t.Errorf("the first answer has %d bytes", len(got.body))
	}
	again := s.pay(201, "k", `{}`)
	if again.header.Get("Location") != "/payments/1" || again.header.Get("Content-Type") != "application/json" ||
		!strings.Contains(again.body, `"status":"completed"`) || !strings.Contains(again.body, `"resource":"pay_1","response_status":201`) {
		t.Errorf("the replay is %+v", again)
	}
	s.runs(1)
}

func TestBytesThatAreNoTextAreReplayed(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, answering(200, "\x1f\x8b\xff\x00"))
	s.replayed(s.pay(200, "k", `{}`), "k", `{}`)
}

func TestChosenHeadersAreRecordedAndOthersAreNot(t *testing.T) {
	t.Parallel()
	s := serve(t, unsafe, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Invoice", "7")
		w.Header().Set("X-Debug", "yes")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(200)
		w.Header().Set("X-Invoice", "too late")
	}, func(o *idempotency.Options) { o.Headers = []string{"x-invoice"} })
	first := s.pay(200, "k", `{}`)
	again := s.pay(200, "k", `{}`)
	if first.header.Get("X-Debug") != "yes" || again.header.Get("X-Invoice") != "7" || again.header.Get("X-Debug") != "" {
		t.Errorf("first %v, then %v", first.header, again.header)
	}
}

// downed is a ledger that can be out of reach.
type downed struct {
	store.Ledger
	down atomic.Bool
}

func (d *downed) Claim(ctx context.Context, claims ...store.Claim) ([]store.Claimed, error) {
	if d.down.Load() {
		return nil, errors.New("no route to the ledger")
	}
	return d.Ledger.Claim(ctx, claims...)
}

// R26: no ledger, no effect.
func TestR26WithoutItsLedgerNothingRuns(t *testing.T) {
	t.Parallel()
	ledger := &downed{Ledger: openLedger(t)}
	s := serveOn(t, ledger, []settle.AnyTool{idempotency.Declare(route, unsafe)}, created())
	first := s.pay(201, "k", `{}`)
	ledger.down.Store(true)
	s.refused(503, "unavailable", "k", `{}`)
	if got := s.refused(503, "unavailable", "k-2", `{}`); got.header.Get("Retry-After") != "1" {
		t.Errorf("got %v", got.header)
	}
	if doc := s.ask(503, "k"); doc["title"] == nil {
		t.Errorf("the status endpoint says %v", doc)
	}
	ledger.down.Store(false)
	s.replayed(first, "k", `{}`)
	s.runs(1)
}
