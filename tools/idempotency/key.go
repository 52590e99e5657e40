package idempotency

import (
	"fmt"
	"net/http"
	"strings"
)

// Header is the request header that carries the key
// (draft-ietf-httpapi-idempotency-key-header-07, section 2.1).
const Header = "Idempotency-Key"

// Headers of the answers.
const (
	// HeaderReplayed is "true" on an answer that was recorded before: nothing was
	// executed for this request (R48).
	HeaderReplayed = "Idempotency-Replayed"
	// HeaderOperation is the operation's random reference: what may stand in a
	// log, and what the operator's queue knows it by.
	HeaderOperation = "Idempotency-Operation"
	// HeaderStatus is the outcome's code (R59), or "not_recorded" on a handler's
	// answer that the ledger couldn't take yet (R24).
	HeaderStatus = "Idempotency-Status"
	// HeaderCorrected is the reference of the compensation that corrected what
	// this answer tells of (R48).
	HeaderCorrected = "Idempotency-Corrected-By"
)

// MaxKey bounds a key, in bytes without its quotes.
const MaxKey = 255

// KeyError says what is wrong with a request's key. It doesn't hold the key.
type KeyError struct {
	// Missing says that there is none.
	Missing bool
	Reason  string
}

func (e *KeyError) Error() string { return "idempotency: the key " + e.Reason }

// keyOf reads the key of a request: a string of RFC 9651, section 3.3.3, in
// quotes, or the same key without quotes, as many clients send it.
func keyOf(h http.Header) (string, error) {
	values := h.Values(Header)
	switch len(values) {
	case 0:
		return "", &KeyError{Missing: true, Reason: "is missing: send a header " + Header + " with a new random value for each new purpose, and the same value when you send it again"}
	case 1:
	default:
		return "", &KeyError{Reason: fmt.Sprintf("was sent %d times: send it once", len(values))}
	}
	value := strings.Trim(values[0], " \t")
	key, err := value, error(nil)
	if strings.HasPrefix(value, `"`) {
		key, err = unquote(value)
	} else {
		err = checkBare(value)
	}
	if err == nil {
		err = checkKey(key)
	}
	return key, err
}

// unquote reads a string of RFC 9651, section 4.2.5. Parameters behind it have
// no meaning here and are refused, so that no two readers differ on the key.
func unquote(value string) (string, error) {
	var key strings.Builder
	for i := 1; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"' && i == len(value)-1:
			return key.String(), nil
		case c == '"':
			return "", &KeyError{Reason: "has something behind its closing quote: send the string alone, without parameters"}
		case c == '\\':
			if i++; i == len(value) || value[i] != '"' && value[i] != '\\' {
				return "", &KeyError{Reason: `has a backslash before something else than a quote or a backslash`}
			}
			key.WriteByte(value[i])
		default:
			key.WriteByte(c)
		}
	}
	return "", &KeyError{Reason: "has no closing quote"}
}

// checkBare refuses in a key without quotes what would mean something else in a
// structured field.
func checkBare(value string) error {
	if strings.ContainsAny(value, " \t\"\\,;") {
		return &KeyError{Reason: `has a blank, quote, backslash, comma or semicolon: put it in double quotes, as in "8e03978e-40d5-43dd-bc93-6894a57f9324"`}
	}
	return nil
}

func checkKey(key string) error {
	switch {
	case key == "":
		return &KeyError{Reason: "is empty: send a new random value for each new purpose"}
	case len(key) > MaxKey:
		return &KeyError{Reason: fmt.Sprintf("has %d bytes and at most %d are allowed", len(key), MaxKey)}
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return &KeyError{Reason: "has a character that isn't printable ASCII"}
		}
	}
	return nil
}

// SetKey puts a key on a request's headers, in the form of RFC 9651: for a key
// that the caller makes and keeps itself, which has to outlive its process.
// [Transport] leaves it as it is.
func SetKey(h http.Header, key string) error {
	if err := checkKey(key); err != nil {
		return err
	}
	h.Set(Header, quote(key))
	return nil
}

func quote(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}
