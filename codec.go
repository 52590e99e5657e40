package settle

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"errors"
	"fmt"
)

// Codec encrypts what a ledger keeps of a call: arguments, results, the names of
// subject, task and goal, the keys of intents and tenants (R56). Both methods
// get the context that the value belongs to, which must be the same for Open.
type Codec interface {
	Seal(plain, belongsTo []byte) ([]byte, error)
	Open(sealed, belongsTo []byte) ([]byte, error)
}

// MissingKeyError says that a value was sealed under a key that the codec
// doesn't have.
type MissingKeyError struct{ KeyID string }

func (e *MissingKeyError) Error() string {
	return fmt.Sprintf("settle: the ledger holds values sealed under the key %q, which this codec doesn't have: add it to the codec's keys", e.KeyID)
}

// AESCodec is AES-256-GCM from the standard library, with key ids for rotation.
type AESCodec struct {
	current string
	sealers map[string]cipher.AEAD
}

// NewAESCodec seals under the current key and opens under any of the keys, by
// id: 32 bytes each, ids of 1 to 64 bytes. To rotate, add a key and make it the
// current one; keep the old ones for as long as anything is sealed under them.
func NewAESCodec(current string, keys map[string][]byte) (*AESCodec, error) {
	c := &AESCodec{current: current, sealers: map[string]cipher.AEAD{}}
	if _, ok := keys[current]; !ok {
		return nil, fmt.Errorf("settle: the current key %q isn't among the keys", current)
	}
	for id, key := range keys {
		if len(id) == 0 || len(id) > 64 {
			return nil, errors.New("settle: a key id has 1 to 64 bytes")
		}
		if len(key) != 32 {
			return nil, fmt.Errorf("settle: the key %q has %d bytes and AES-256 takes 32", id, len(key))
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, fmt.Errorf("settle: the key %q: %w", id, err)
		}
		if c.sealers[id], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("settle: the key %q: %w", id, err)
		}
	}
	return c, nil
}

// sealedMark begins a sealed value: a byte that no JSON and no name begins with,
// and the version of the format.
const sealedMark = "\x00s1"

// Seal implements [Codec]: mark, length of the key id, key id, nonce, ciphertext.
func (c *AESCodec) Seal(plain, belongsTo []byte) ([]byte, error) {
	aead := c.sealers[c.current]
	sealed := append([]byte(sealedMark), byte(len(c.current)))
	sealed = append(sealed, c.current...)
	nonce := make([]byte, aead.NonceSize())
	rand.Read(nonce) //nolint:errcheck // never fails: crypto/rand ends the program instead
	return aead.Seal(append(sealed, nonce...), nonce, plain, belongsTo), nil
}

// ErrSealed says that a value was sealed with another key of the same id, for
// another row, or was changed.
var ErrSealed = errors.New("settle: a sealed value of the ledger can't be opened: the key of that id is another one, or the value was changed or belongs to another row")

// Open implements [Codec].
func (c *AESCodec) Open(sealed, belongsTo []byte) ([]byte, error) {
	id := keyOf(sealed)
	if id == "" {
		return nil, ErrSealed // no key has an id without bytes
	}
	aead, ok := c.sealers[id]
	if !ok {
		return nil, &MissingKeyError{KeyID: id}
	}
	rest := sealed[len(sealedMark)+1+len(id):]
	if len(rest) < aead.NonceSize() {
		return nil, ErrSealed
	}
	plain, err := aead.Open(nil, rest[:aead.NonceSize()], rest[aead.NonceSize():], belongsTo)
	if err != nil {
		return nil, ErrSealed
	}
	return plain, nil
}

// keyOf is the id of the key that an [AESCodec] has sealed a value under, or "".
func keyOf(sealed []byte) string {
	head := len(sealedMark)
	if len(sealed) < head+1 || string(sealed[:head]) != sealedMark || len(sealed) < head+1+int(sealed[head]) {
		return ""
	}
	return string(sealed[head+1 : head+1+int(sealed[head])])
}

// WithCodec seals what the ledger keeps. Values that were stored before are
// read as they are. With a codec, secret fields are stored too (R56).
func WithCodec(c Codec) Option { return optionFunc(func(s *settings) { s.codec = c }) }
