package mcpwire

import "encoding/json"

// Arguments are a call's arguments as a program gave them, as JSON. Rounded says
// that numbers in them may have gone through float64 before (adapters, rule 2).
func Arguments(given any) (args json.RawMessage, rounded bool, err error) {
	if given == nil {
		return json.RawMessage("{}"), false, nil
	}
	args, err = json.Marshal(given)
	return args, mayBeRounded(given), err
}

// mayBeRounded knows the forms that decoders and programs give arguments; a type
// of the program's own may hold anything.
func mayBeRounded(v any) bool {
	switch v := v.(type) {
	case nil, bool, string, json.Number, json.RawMessage, int, int8, int16, int32, int64, uint, uint8, uint16, uint32, uint64:
		return false
	case []any:
		for _, item := range v {
			if mayBeRounded(item) {
				return true
			}
		}
		return false
	case map[string]any:
		for _, item := range v {
			if mayBeRounded(item) {
				return true
			}
		}
		return false
	}
	return true
}
