package settleeino

import (
	"context"
	"errors"

	"github.com/cloudwego/eino/adk"

	"github.com/settle-go/settle"
)

// The names of principal and task among an ADK session's values.
const (
	sessionTenant  = "settle_tenant"
	sessionSubject = "settle_subject"
	sessionTask    = "settle_task"
	sessionGoal    = "settle_goal"
)

// SessionValues are principal and task as values of an ADK session, which is
// saved with a checkpoint and is there again when it is resumed, whoever does:
//
//	runner.Run(ctx, messages, adk.WithSessionValues(settleeino.SessionValues(p, t)))
//
// The principal comes from the host's authentication here too (R6). Where the
// context names one as well, or a task, they have to be the same: a call under
// two names is refused, since a resumed run under another intent would do
// everything anew.
func SessionValues(p settle.Principal, t settle.Task) map[string]any {
	return map[string]any{sessionTenant: p.Tenant, sessionSubject: p.Subject, sessionTask: t.ID, sessionGoal: t.Goal}
}

var (
	errTwoPrincipals = errors.New("settleeino: the context and the session name two principals: give the run the one that it began with; nothing was done")
	errTwoTasks      = errors.New("settleeino: the context and the session name two tasks: give the run the one that it began with; nothing was done")
)

// scoped is the context with the principal and the task of the session, where it
// has some. What is missing in both is the executor's to refuse.
func scoped(ctx context.Context) (context.Context, error) {
	if tenant, subject, ok := fromSession(ctx, sessionTenant, sessionSubject); ok {
		p := settle.Principal{Tenant: tenant, Subject: subject}
		if other, ok := settle.PrincipalFrom(ctx); ok && other != p {
			return ctx, errTwoPrincipals
		}
		ctx = settle.WithPrincipal(ctx, p)
	}
	if id, goal, ok := fromSession(ctx, sessionTask, sessionGoal); ok {
		t := settle.Task{ID: id, Goal: goal}
		if other, ok := settle.TaskFrom(ctx); ok && other != t {
			return ctx, errTwoTasks
		}
		ctx = settle.WithTask(ctx, t)
	}
	return ctx, nil
}

func fromSession(ctx context.Context, first, second string) (a, b string, ok bool) {
	left, _ := adk.GetSessionValue(ctx, first)
	right, _ := adk.GetSessionValue(ctx, second)
	a, _ = left.(string)
	b, _ = right.(string)
	return a, b, left != nil || right != nil
}
