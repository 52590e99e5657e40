package settle

import (
	"fmt"
	"strings"
	"time"

	"github.com/settle-go/settle/store"
)

// Code is the outcome's code in a text or a trace: the status.
func (o Outcome) Code() string { return string(o.Status) }

// ForModel is what the model is told. It states what is known, what isn't, and
// what the model may do; it never invites a call that could repeat an effect
// (R59). It is content, to be sent as the tool's result and not as an error.
//
// The text begins with the code in brackets, followed by "replayed" where
// nothing was executed for this call, and by the operation's reference, which
// the model may pass on to a person:
//
//	[completed, replayed; operation 0192…] …
//
// The wording may change between versions; the code in front doesn't.
func (o Outcome) ForModel() string {
	var b strings.Builder
	b.WriteString("[" + o.Code())
	if o.Replayed {
		b.WriteString(", replayed")
	}
	if o.Operation != "" {
		b.WriteString("; operation " + o.Operation)
	}
	b.WriteString("] ")
	b.WriteString(o.sentence())
	if len(o.Result) > 0 && o.Status == StatusCompleted {
		b.WriteString("\nresult: ")
		b.Write(o.Result)
	}
	return b.String()
}

// Note is what goes beside a framework's own result on a replay: that nothing
// new was done, or what is recorded instead. It is empty for a first execution.
func (o Outcome) Note() string {
	switch {
	case !o.Replayed:
		return ""
	case o.Status == StatusCompleted:
		return o.replayNote()
	}
	return o.sentence()
}

func (o Outcome) sentence() string {
	switch o.Status {
	case StatusCompleted:
		return o.completed()
	case StatusFailed:
		return o.failed()
	case StatusNotDone:
		return o.notDone()
	case StatusInvalidArguments:
		if o.Reason == reasonSchema {
			return fmt.Sprintf("The declaration of %s is broken, so nothing was done, and no arguments would change that. Don't call it again. Go on with what doesn't depend on it.", o.Tool)
		}
		return "The arguments were not accepted, so nothing was done: " + o.Detail + ". A call with corrected arguments is welcome."
	case StatusDenied:
		return o.denied()
	case StatusConflict:
		return o.conflict()
	case StatusHeld:
		return o.held()
	case StatusInProgress:
		return fmt.Sprintf("%s is being carried out and hasn't answered yet. Don't call it again for this; its outcome will be reported. Go on with what doesn't depend on it.", o.Tool)
	case StatusUnknown:
		if o.Reason == reasonUnanswered {
			return fmt.Sprintf("It is not known whether %s happened: it was handed to the database, whose answer was lost. Don't call it again in other words, and don't tell anybody that it was done or that it failed. "+
				"The very same call finds out what happened, and carries it out only if it wasn't.", o.Tool)
		}
		return fmt.Sprintf("It is not known whether %s happened: it may have been done, or not. The system looks for evidence, and asks a person if there is none. "+
			"Don't call it again for this purpose, also not in other words, and don't tell anybody that it was done or that it failed. Go on with what doesn't depend on it.", o.Tool)
	case StatusAwaitingApproval:
		return fmt.Sprintf("Nothing was sent: %s needs a person's approval, and has been asked for with exactly these arguments. Don't call it with others for this. Go on with what doesn't depend on it, or end the turn and say what is waited for.", o.Tool)
	case StatusManual:
		return fmt.Sprintf("It is not known whether %s happened, and a person is looking into it. Don't call it again for this purpose, also not in other words, and don't tell anybody that it was done or that it failed.", o.Tool)
	case StatusSuperseded:
		return o.superseded()
	case StatusAbandoned:
		return fmt.Sprintf("A person has closed this %s without learning whether it happened. It will not be executed again. Don't tell anybody that it was done or that it failed.", o.Tool)
	case StatusExpired:
		if o.Reason == reasonOriginalExpired {
			return fmt.Sprintf("%s was not carried out: the details of what it would correct are gone, so nobody can tell what to correct. Nothing was sent.", o.Tool)
		}
		return fmt.Sprintf("The record of this %s is closed and its details are gone. It was not executed for this call and will not be.", o.Tool)
	case StatusNoSuchTool:
		return "There is no tool with this name, so nothing was done. Use one of the tools that were offered."
	case StatusUnavailable:
		return o.unavailable()
	}
	return "Nothing is known of this call."
}

func (o Outcome) completed() string {
	text := o.Tool + " was carried out."
	if o.Replayed {
		text = o.replayNote()
	}
	if o.Resource != "" {
		text += fmt.Sprintf(" What it made or changed is %q.", o.Resource)
	}
	switch o.Reason {
	case reasonDenied:
		return "This operation completed before. You may no longer see its result. Nothing was executed for this call."
	case "result_too_large":
		text += " Its result is too large to be kept" + o.byID()
	case "result_of_other_version", "result_not_encodable":
		text += " Its result can't be shown any more" + o.byID()
	case "not_recorded":
		text += " It could not be written down yet; don't call it again."
	}
	if o.CorrectedBy != "" {
		text += fmt.Sprintf(" It was corrected afterwards (operation %s): what it made doesn't stand as it was.", o.CorrectedBy)
	}
	if o.Duplicates > 0 {
		text += " An earlier attempt may have done the same: its owner accepts duplicates."
	}
	return text
}

// byID says where a result is that isn't here.
func (o Outcome) byID() string {
	if o.Resource == "" {
		return "."
	}
	return "; look it up by that id."
}

// unavailable tells of this call only: an earlier one of the same may be on record,
// which can't be read now.
func (o Outcome) unavailable() string {
	text := "Nothing was sent for this call of " + o.Tool + ": "
	switch o.Reason {
	case reasonCallerGone:
		return text + "it was given up before anything was begun. That says nothing of earlier calls."
	case reasonNewerVersion:
		return text + "its record was begun by another version of this system. Don't call it again; it takes a person to upgrade the system. Go on with what doesn't depend on it."
	}
	return text + "the system that keeps record of such actions can't be reached. That says nothing of earlier calls. It may be asked for again later."
}

func (o Outcome) replayNote() string {
	return fmt.Sprintf("%s was carried out before; nothing new was done for this call.%s", o.Tool, o.repeatHint())
}

// repeatHint tells how to mean a repeat, where the tool lets the model do so.
func (o Outcome) repeatHint() string {
	if !o.repeatable {
		return ""
	}
	return fmt.Sprintf(" If it was really meant to be done once more, say so with the next number in %s.", occurrenceParameter)
}

// notCompleted tells of a composite that didn't come to its end: what its steps
// did, stays.
func (o Outcome) notCompleted() string {
	text := o.Tool + " was not completed. Steps of it that are done stay done and won't be repeated."
	if o.Detail != "" {
		text += fmt.Sprintf(" The answer was: %q.", o.Detail)
	}
	return text + o.related()
}

// superseded tells of a write that gave way, or that was made and then overtaken.
func (o Outcome) superseded() string {
	text := fmt.Sprintf("Nothing was written: a newer %s on the same resource was made after this one, and that newer state stands.", o.Tool)
	if o.state == store.Completed {
		text = fmt.Sprintf("%s was carried out before, and a newer one on the same resource after it: that newer state stands. Nothing was written for this call.", o.Tool)
	}
	return text + o.related() + o.repeatHint()
}

func (o Outcome) failed() string {
	if o.composite {
		if o.Reason != reasonRejected {
			return o.notCompleted()
		}
		return o.notCompleted() + " The same call would be refused again; a corrected one may follow."
	}
	text := fmt.Sprintf("%s was refused and had no effect.", o.Tool)
	if o.Detail != "" {
		text = fmt.Sprintf("%s was refused and had no effect. The answer was: %q.", o.Tool, o.Detail)
	}
	switch o.Reason {
	case reasonReplaced:
		return fmt.Sprintf("This call of %s had no effect and was replaced by a later one.", o.Tool)
	case reasonRejected:
		text += " The same call would be refused again; a corrected one may follow."
	}
	return text
}

func (o Outcome) notDone() string {
	if o.composite {
		return o.notCompleted() + " Nothing more is done about it unless it is called again with the same arguments."
	}
	if o.Reason == reasonNothingToUndo {
		return fmt.Sprintf("%s was not carried out: its original leaves nothing to correct.%s", o.Tool, o.related())
	}
	text := fmt.Sprintf("%s did not happen and had no effect; nothing more is done about it unless it is called again.", o.Tool)
	if !o.NotBefore.IsZero() {
		text += fmt.Sprintf(" It must not be called before %s.", o.NotBefore.UTC().Format(time.RFC3339))
	}
	return text
}

func (o Outcome) denied() string {
	if o.Reason == reasonApprovalExpired {
		return fmt.Sprintf("%s was not carried out: nobody approved it in time. Nothing was sent.", o.Tool)
	}
	return fmt.Sprintf("%s is not allowed here, so nothing was done. Asking in other words doesn't change that.", o.Tool)
}

func (o Outcome) conflict() string {
	switch o.Reason {
	case reasonUnique:
		return fmt.Sprintf("Not done: there may be only one such %s, and there is one already.%s", o.Tool, o.related())
	case reasonRecursion:
		return fmt.Sprintf("Not done: %s called itself.", o.Tool)
	}
	text := fmt.Sprintf("Not done: the same %s was asked for before with other arguments", o.Tool)
	if len(o.Fields) > 0 {
		text += " (different: " + strings.Join(o.Fields, ", ") + ")"
	}
	switch shown := o.Reason != reasonDenied; {
	case shown && o.state == store.Abandoned, shown && o.state != 0 && !o.state.Settled():
		text += ". Don't say of that call that it was done or that it failed."
	default:
		text += ", and it stands as it was."
	}
	return text + " The new arguments were not sent to anybody." + o.related()
}

func (o Outcome) held() string {
	switch o.Reason {
	case reasonContractChanged:
		return fmt.Sprintf("Not done: what identifies a call of %s has changed while this task was under way, so it can't be told whether this was done before. A person has to decide. Don't call it again for this purpose, and don't tell anybody that it was done or that it failed.", o.Tool)
	case reasonOccurrence:
		return fmt.Sprintf("Not done: the occurrence of %s before this one isn't settled yet.%s", o.Tool, o.related())
	case reasonUntold:
		return fmt.Sprintf("Not done yet: before the restart, %s was carried out for this task already.%s "+
			"If this call means the same thing, it is done: don't call it again. If it means something else, it may be called once more and will then be carried out.", o.Tool, o.related())
	}
	return fmt.Sprintf("Not done: another %s of this task isn't settled, and this call may mean the same thing.%s Wait for its outcome; don't call it in other words.", o.Tool, o.related())
}

func (o Outcome) related() string {
	var b strings.Builder
	for _, r := range o.Related {
		fmt.Fprintf(&b, " Operation %s is %s", r.Operation, strings.ReplaceAll(r.State, "_", " "))
		if r.Resource != "" {
			fmt.Fprintf(&b, " (%q)", r.Resource)
		}
		b.WriteString(".")
	}
	return b.String()
}
