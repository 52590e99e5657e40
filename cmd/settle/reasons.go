package main

// because says in words what the code of a case's reason means to a person;
// there is no text for a code that speaks for itself.
func because(reason string) string {
	if text := reasons[reason]; text != "" {
		return reason + ": " + text
	}
	return shown(reason)
}

// reasons are why an operation becomes a person's.
var reasons = map[string]string{
	"no_evidence_possible":     "nobody knows whether it happened, and its tool can't ask the far side",
	"escalated":                "nobody knows whether it happened, and the far side gave no evidence in time",
	"evidence_differs":         "the far side has something like it, which differs from what was asked for",
	"several_matches":          "the far side has several that may be it",
	"resource_settles_another": "what the far side has is another operation's already",
	"resource_too_old":         "what the far side has is older than the first attempt",
	"arguments_undecodable":    "today's tool can't read the arguments that were accepted",
	"changed_since":            "somebody else has changed the effect since, and a correction would undo that too",
	"late_success":             "an attempt has reported success after the operation was settled, or ran again: look for a second effect",
	"approval_required":        "nothing was sent; a person has to allow exactly this call",
}
