package settleadk

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"google.golang.org/adk/v2/agent"

	"github.com/settle-go/settle"
)

// Option changes where principal and task come from, or which tools are guarded.
type Option func(*guard)

// PrincipalFromSession takes the principal from the session where the context
// has none: the app is the tenant, the user the subject (R6). It is right where
// your server sets the user from its authentication, and wrong where a client
// names it.
func PrincipalFromSession() Option { return func(g *guard) { g.fromSession = true } }

// TaskFromState takes the task from the session where the context has none: its
// id is the string under key in the session's state, its goal the constant. Only
// the host may write that key: no tool whose arguments a model chooses (R7).
func TaskFromState(key, goal string) Option {
	return func(g *guard) { g.stateKey, g.goal = key, goal }
}

// Unguarded lets the tools with these names run as if there were no plugin: for
// tools that steer the framework and act nowhere else, and for agents as tools
// whose own tools are guarded by [Tool]. Those of adk's own machinery (transfers
// between agents, exit_loop) needn't be named.
func Unguarded(names ...string) Option {
	return func(g *guard) { g.unguarded = append(g.unguarded, names...) }
}

// guard is an executor before the tools of a runner.
type guard struct {
	executor    *settle.Executor
	fromSession bool
	stateKey    string
	goal        string
	unguarded   []string
	// briefs holds the brief of each invocation that runs, by its id.
	briefs sync.Map
}

func newGuard(x *settle.Executor, options []Option) *guard {
	g := &guard{executor: x, unguarded: []string{"exit_loop"}}
	for _, o := range options {
		o(g)
	}
	return g
}

// scope is the context of a call: it names principal and task.
func (g *guard) scope(ctx agent.Context) (context.Context, error) {
	scoped := context.Context(ctx)
	if _, ok := settle.PrincipalFrom(ctx); !ok && g.fromSession {
		scoped = settle.WithPrincipal(scoped, settle.Principal{Tenant: ctx.AppName(), Subject: ctx.UserID()})
	}
	if _, ok := settle.TaskFrom(ctx); ok || g.stateKey == "" {
		return scoped, nil
	}
	value, err := ctx.State().Get(g.stateKey)
	if err != nil {
		return nil, fmt.Errorf("settleadk: the context has no task, and the session's state has none: call settle.WithTask, or create the session with the key that TaskFromState names (R7): %w", err)
	}
	id, ok := value.(string)
	if !ok {
		return nil, fmt.Errorf("settleadk: the task's id in the session's state is a %T; TaskFromState needs a string (R7)", value)
	}
	return settle.WithTask(scoped, settle.Task{ID: id, Goal: g.goal}), nil
}

// passes says that a tool runs without the guard.
func (g *guard) passes(t function) bool {
	return slices.Contains(g.unguarded, t.Name()) || steers(t) || isOwn(t)
}
