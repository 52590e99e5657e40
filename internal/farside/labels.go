package farside

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
)

// Labels keeps one label per issue. Writing the label that an issue has changes
// nothing more, and anybody can read which it is:
//
//	PUT /issues/{id}/label {"label"}   200; with If-Match: 412 where the version is another
//	GET /issues/{id}                   200; an issue that was never written has version 0
//
// Its effects are the changes; [Labels.Acted] counts the writes.
type Labels struct {
	*Server
	issues map[string]Issue
	acted  int
}

// Issue is an issue as the far side shows it. Version counts its changes.
type Issue struct {
	ID      string `json:"id"`
	Label   string `json:"label"`
	Version int    `json:"version"`
}

type labelBody struct {
	Label string `json:"label"`
}

// NewLabels starts a label service. It panics where loopback has no free port.
func NewLabels(opts ...Option) *Labels {
	l := &Labels{Server: newServer([]string{"issue", "label"}, opts), issues: map[string]Issue{}}
	l.handle("PUT /issues/{id}/label", &l.Writes, l.set)
	l.handle("GET /issues/{id}", &l.Reads, l.get)
	l.start()
	return l
}

// Acted counts the writes that were carried out, those that changed nothing included.
func (l *Labels) Acted() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.acted
}

func (l *Labels) set(in *Request, r *http.Request, body []byte) func() reply {
	var b labelBody
	if json.Unmarshal(body, &b) != nil {
		return always(refusal(http.StatusBadRequest, "invalid_body"))
	}
	id, condition := r.PathValue("id"), r.Header.Get("If-Match")
	in.Fields = map[string]string{"issue": id, "label": b.Label}
	req := *in
	return func() reply {
		issue := l.issue(id)
		if condition != "" && condition != strconv.Itoa(issue.Version) {
			return refusal(http.StatusPreconditionFailed, "other_version")
		}
		l.acted++
		if issue.Version == 0 || issue.Label != b.Label {
			issue.Label = b.Label
			issue.Version++
			l.issues[id] = issue
			l.record("label", id, req)
		}
		return reply{status: http.StatusOK, body: issue}
	}
}

func (l *Labels) get(in *Request, r *http.Request, _ []byte) func() reply {
	id := r.PathValue("id")
	in.Fields = map[string]string{"issue": id}
	return func() reply { return reply{status: http.StatusOK, body: l.issue(id)} }
}

func (l *Labels) issue(id string) Issue {
	if i, ok := l.issues[id]; ok {
		return i
	}
	return Issue{ID: id}
}

// LabelsClient calls [Labels]. Its errors are [Error]s.
type LabelsClient struct{ client }

// NewLabelsClient makes a client of the label service at the base URL.
func NewLabelsClient(baseURL string) *LabelsClient { return &LabelsClient{newClient(baseURL)} }

// Set writes the issue's label.
func (c *LabelsClient) Set(ctx context.Context, issue, label string) (Issue, error) {
	return c.put(ctx, issue, label, nil)
}

// SetIf writes the issue's label where its version is still that one, and is
// rejected with status 412 where it isn't.
func (c *LabelsClient) SetIf(ctx context.Context, issue, label string, version int) (Issue, error) {
	return c.put(ctx, issue, label, http.Header{"If-Match": {strconv.Itoa(version)}})
}

// Get reads the issue.
func (c *LabelsClient) Get(ctx context.Context, issue string) (Issue, error) {
	var out Issue
	err := c.call(ctx, http.MethodGet, "/issues/"+url.PathEscape(issue), nil, nil, &out)
	return out, err
}

func (c *LabelsClient) put(ctx context.Context, issue, label string, header http.Header) (Issue, error) {
	var out Issue
	err := c.call(ctx, http.MethodPut, "/issues/"+url.PathEscape(issue)+"/label", header, labelBody{label}, &out)
	return out, err
}
