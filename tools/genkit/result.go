package settlegenkit

import (
	"encoding/json"
	"slices"

	"github.com/firebase/genkit/go/ai"

	"github.com/settle-go/settle"
	"github.com/settle-go/settle/tools/internal/exact"
)

// result is what a tool returned. It is recorded as the business result: the
// output alone, unless the tool is one of genkit's multipart tools, whose
// content belongs to it (R47).
type result struct {
	response *ai.MultipartToolResponse
	whole    bool
}

// MarshalJSON writes what is recorded.
func (r *result) MarshalJSON() ([]byte, error) {
	if r.whole {
		return json.Marshal(r.response)
	}
	return json.Marshal(r.response.Output)
}

// UnmarshalJSON leaves the reading to [recorded], which knows the kind of tool.
func (*result) UnmarshalJSON([]byte) error { return nil }

// recorded is the response that an outcome's result makes, nil where it has none.
func recorded(out settle.Outcome, whole bool) *ai.MultipartToolResponse {
	if whole {
		if r, err := settle.Decode[ai.MultipartToolResponse](out); err == nil {
			return &r
		}
	}
	output, err := exact.Value(out.Result)
	if err != nil || output == nil {
		return nil
	}
	return &ai.MultipartToolResponse{Output: output}
}

// open lists the outcomes that are still to come.
var open = []settle.Status{settle.StatusUnknown, settle.StatusInProgress, settle.StatusManual, settle.StatusAwaitingApproval}

// told is the answer where the tool didn't give one for this call: what is
// recorded with a word beside it (R48), or what is known instead.
func (g *Guard) told(out settle.Outcome, whole bool) (*ai.MultipartToolResponse, error) {
	response := recorded(out, whole)
	if out.Status == settle.StatusCompleted && response != nil {
		out.Result = nil // the output has it
		response.Output = noted(response.Output, out)
		return response, nil
	}
	said := map[string]any{"status": string(out.Status), "operation": out.Operation, "message": out.ForModel()}
	if g.interrupts && slices.Contains(open, out.Status) {
		return nil, ai.NewToolInterruptError(said)
	}
	return &ai.MultipartToolResponse{Output: said}, nil
}

// noted is an output with the word of a replay: most models are shown nothing of
// a response but its output.
func noted(output any, out settle.Outcome) any {
	if !out.Replayed {
		return output
	}
	if object, ok := output.(map[string]any); ok {
		object["settle_note"] = out.ForModel()
		return object
	}
	return map[string]any{"result": output, "settle_note": out.ForModel()}
}
