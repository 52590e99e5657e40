package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Signatures as Standard Webhooks 1 says: HMAC-SHA256 over id, timestamp and body.

const (
	headerID        = "webhook-id"
	headerTimestamp = "webhook-timestamp"
	headerSignature = "webhook-signature"

	secretPrefix = "whsec_"
	// leastSecret is what a secret must have, in bytes.
	leastSecret = 24
	// tolerance is how far a timestamp may be from the receiver's clock.
	tolerance = 5 * time.Minute
)

// ErrSignature says that none of the secrets made the request's signature, or
// that it has none.
var ErrSignature = errors.New("webhook: the request isn't signed with a secret of this receiver")

// ErrTimestamp says that the request was signed more than 5 minutes ago, or ahead.
var ErrTimestamp = errors.New("webhook: the request's timestamp is more than 5 minutes from this receiver's clock")

// keys are decoded secrets.
type keys [][]byte

// parseKeys decodes secrets. Its errors say which one is wrong and never what it
// is (R55).
func parseKeys(secrets []string) (keys, error) {
	if len(secrets) == 0 {
		return nil, errors.New("webhook: there is no secret to sign with: give one or more as whsec_… (32 random bytes in base64)")
	}
	all := make(keys, 0, len(secrets))
	for n, secret := range secrets {
		encoded, ok := strings.CutPrefix(secret, secretPrefix)
		key, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(encoded, "="))
		if !ok || err != nil || len(key) < leastSecret {
			return nil, fmt.Errorf("webhook: secret %d of %d isn't %s and at least %d bytes in base64", n+1, len(secrets), secretPrefix, leastSecret)
		}
		all = append(all, key)
	}
	return all, nil
}

// sum is the signature of one key.
func sum(key []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// sign sets the headers: a signature by each key, so that a receiver that knows
// the old or the new secret accepts it.
func (k keys) sign(h http.Header, id string, at time.Time, body []byte) {
	timestamp := strconv.FormatInt(at.Unix(), 10)
	signatures := make([]string, len(k))
	for i, key := range k {
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(sum(key, id, timestamp, body))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, timestamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
}

// Verifier checks the signatures of received events. It is safe for concurrent use.
type Verifier struct {
	// Now is the receiver's clock, time.Now where it is nil. Set it before the
	// first use.
	Now func() time.Time

	keys keys
}

// NewVerifier returns a verifier that accepts what was signed with any of the
// secrets, whsec_ and base64 each: to change one, accept both for a while.
func NewVerifier(secrets ...string) (*Verifier, error) {
	keys, err := parseKeys(secrets)
	if err != nil {
		return nil, err
	}
	return &Verifier{keys: keys}, nil
}

// Verify checks the headers webhook-id, webhook-timestamp and webhook-signature
// against a request's body, exactly as it came. The error is [ErrSignature] or
// [ErrTimestamp]. A request that is repeated within 5 minutes passes: its event's
// id tells (tools/inbox).
func (v *Verifier) Verify(h http.Header, body []byte) error {
	id, timestamp := h.Get(headerID), h.Get(headerTimestamp)
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil || id == "" || !v.keys.made(h.Get(headerSignature), id, timestamp, body) {
		return ErrSignature
	}
	// Only behind the signature, so that nobody else can sound the clock.
	if age := now(v.Now).Sub(time.Unix(seconds, 0)); age > tolerance || age < -tolerance {
		return ErrTimestamp
	}
	return nil
}

// made tells whether one of the keys made one of the header's signatures.
// Signatures of other versions are passed over.
func (k keys) made(header, id, timestamp string, body []byte) bool {
	var signatures [][]byte
	for signature := range strings.FieldsSeq(header) {
		encoded, ok := strings.CutPrefix(signature, "v1,")
		if decoded, err := base64.StdEncoding.DecodeString(encoded); ok && err == nil {
			signatures = append(signatures, decoded)
		}
	}
	made := false
	for _, key := range k {
		want := sum(key, id, timestamp, body)
		for _, signature := range signatures {
			made = hmac.Equal(signature, want) || made
		}
	}
	return made
}

// now is the clock's time, or the machine's where there is none.
func now(clock func() time.Time) time.Time {
	if clock == nil {
		return time.Now()
	}
	return clock()
}
