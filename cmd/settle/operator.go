package main

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"

	"github.com/settle-go/settle"
)

// operator is the person who works here, as the administrator's environment
// names them (R41).
func (a *app) operator() (settle.Operator, error) {
	o := settle.Operator{Name: a.env("SETTLE_OPERATOR"), Tenants: a.tenants()}
	if o.Name == "" {
		return o, usage("nobody is named as the operator: the administrator of this host sets SETTLE_OPERATOR, to one name for each person (R41)")
	}
	return o, nil
}

// tenants are those that may be seen here; nil means all.
func (a *app) tenants() []string {
	list := a.env("SETTLE_OPERATOR_TENANTS")
	if list == "" {
		return nil
	}
	tenants := []string{}
	for tenant := range strings.SplitSeq(list, ",") {
		if tenant = strings.TrimSpace(tenant); tenant != "" {
			tenants = append(tenants, tenant)
		}
	}
	slices.Sort(tenants)
	return slices.Compact(tenants)
}

// ofAllTenants refuses an operator who is limited to some tenants what a command
// does to all of them. instead is what they have for their own.
func (a *app) ofAllTenants(what string, instead ...string) error {
	if a.tenants() == nil {
		return nil
	}
	err := fmt.Errorf("%w: %s is about all tenants and SETTLE_OPERATOR_TENANTS names some; who administers the ledger runs it, without that variable", settle.ErrNotAllowed, what)
	if len(instead) > 0 {
		return next(err, a.command(instead...))
	}
	return err
}

// readKeys reads SETTLE_KEYS; nil where it isn't set. Its errors hold no keys.
func readKeys(text string) (settle.Codec, error) {
	if text == "" {
		return nil, nil
	}
	keys := map[string][]byte{}
	current := ""
	for pair := range strings.SplitSeq(text, ",") {
		id, encoded, ok := strings.Cut(strings.TrimSpace(pair), ":")
		key, err := base64.StdEncoding.DecodeString(encoded)
		if !ok || err != nil || id == "" {
			return nil, usage("SETTLE_KEYS isn't ID:BASE64,ID:BASE64…: each key is 32 bytes in base64, under the id that its values were sealed with")
		}
		if current == "" {
			current = id
		}
		keys[id] = key
	}
	codec, err := settle.NewAESCodec(current, keys)
	if err != nil {
		return nil, usageError{err}
	}
	return codec, nil
}
