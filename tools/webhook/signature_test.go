package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/settle-go/settle/tools/webhook"
)

// The test vector of Standard Webhooks.
const (
	vectorSecret    = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorID        = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorTimestamp = 1614265330
	vectorBody      = `{"test": 2432232314}`
	vectorSignature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
)

// secret is one of a test's own.
func secret(seed string) string {
	return "whsec_" + base64.StdEncoding.EncodeToString([]byte(strings.Repeat(seed, 32)[:32]))
}

func verifier(t testing.TB, now time.Time, secrets ...string) *webhook.Verifier {
	t.Helper()
	v, err := webhook.NewVerifier(secrets...)
	if err != nil {
		t.Fatal(err)
	}
	v.Now = func() time.Time { return now }
	return v
}

func signed(id, timestamp, signature string) http.Header {
	h := http.Header{}
	h.Set("webhook-id", id)
	h.Set("webhook-timestamp", timestamp)
	h.Set("webhook-signature", signature)
	return h
}

func TestStandardWebhooksVector(t *testing.T) {
	t.Parallel()
	at := time.Unix(vectorTimestamp, 0)
	for _, secrets := range [][]string{{vectorSecret}, {secret("new"), vectorSecret}, {vectorSecret, secret("new")}} {
		err := verifier(t, at, secrets...).Verify(signed(vectorID, "1614265330", vectorSignature), []byte(vectorBody))
		if err != nil {
			t.Errorf("with %d secrets: %v", len(secrets), err)
		}
	}
}

func TestVerifyRefusesWhatWasTamperedWith(t *testing.T) {
	t.Parallel()
	const timestamp = "1614265330"
	for name, tc := range map[string]struct {
		id, timestamp, signature, body string
		after                          time.Duration
		want                           error
	}{
		"nothing":             {vectorID, timestamp, vectorSignature, vectorBody, 0, nil},
		"5 minutes later":     {vectorID, timestamp, vectorSignature, vectorBody, 5 * time.Minute, nil},
		"5 minutes earlier":   {vectorID, timestamp, vectorSignature, vectorBody, -5 * time.Minute, nil},
		"too late":            {vectorID, timestamp, vectorSignature, vectorBody, 5*time.Minute + time.Second, webhook.ErrTimestamp},
		"too early":           {vectorID, timestamp, vectorSignature, vectorBody, -5*time.Minute - time.Second, webhook.ErrTimestamp},
		"the body":            {vectorID, timestamp, vectorSignature, `{"test": 2432232315}`, 0, webhook.ErrSignature},
		"the body's end":      {vectorID, timestamp, vectorSignature, vectorBody + " ", 0, webhook.ErrSignature},
		"the id":              {vectorID + "x", timestamp, vectorSignature, vectorBody, 0, webhook.ErrSignature},
		"no id":               {"", timestamp, vectorSignature, vectorBody, 0, webhook.ErrSignature},
		"the time":            {vectorID, "1614265331", vectorSignature, vectorBody, 0, webhook.ErrSignature},
		"no time":             {vectorID, "", vectorSignature, vectorBody, 0, webhook.ErrSignature},
		"a time in words":     {vectorID, "now", vectorSignature, vectorBody, 0, webhook.ErrSignature},
		"the signature":       {vectorID, timestamp, strings.Replace(vectorSignature, "g0", "g1", 1), vectorBody, 0, webhook.ErrSignature},
		"a shorter signature": {vectorID, timestamp, "v1,g0hM", vectorBody, 0, webhook.ErrSignature},
		"an empty signature":  {vectorID, timestamp, "v1,", vectorBody, 0, webhook.ErrSignature},
		"no signature":        {vectorID, timestamp, "", vectorBody, 0, webhook.ErrSignature},
		"another version":     {vectorID, timestamp, strings.Replace(vectorSignature, "v1", "v2", 1), vectorBody, 0, webhook.ErrSignature},
		"others before it":    {vectorID, timestamp, "v1a,abcd v1,AAAA " + vectorSignature, vectorBody, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := verifier(t, time.Unix(vectorTimestamp, 0).Add(tc.after), vectorSecret)
			if err := v.Verify(signed(tc.id, tc.timestamp, tc.signature), []byte(tc.body)); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestR55BadSecretsAreRefusedWithoutBeingRepeated(t *testing.T) {
	t.Parallel()
	for name, secrets := range map[string][]string{
		"none":      nil,
		"no prefix": {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		"no base64": {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS!"},
		"short":     {"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaS"},
		"empty":     {vectorSecret, "whsec_"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := webhook.NewVerifier(secrets...)
			_, sends := webhook.New(webhook.Config{URL: "https://example.com", Source: "desk", Secrets: secrets})
			for _, err := range []error{err, sends} {
				if err == nil || strings.Contains(err.Error(), "MfKQ") {
					t.Errorf("the error is %v", err)
				}
			}
		})
	}
}

// signedNow signs a body with the vector's secret, by this file's own arithmetic.
func signedNow(t testing.TB, body string) http.Header {
	t.Helper()
	key, err := base64.RawStdEncoding.DecodeString(strings.TrimPrefix(vectorSecret, "whsec_"))
	if err != nil {
		t.Fatal(err)
	}
	timestamp := strconv.FormatInt(time.Now().Unix(), 10)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte("msg_1." + timestamp + "." + body))
	return signed("msg_1", timestamp, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
}
