package idempotency

import "strconv"

// Problems are the names of all problems and the status of each.
func Problems() map[string]string {
	all := map[string]string{}
	for _, k := range kinds {
		all[k.name] = strconv.Itoa(k.status)
	}
	return all
}
