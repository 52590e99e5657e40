package canonical

// Shape says how the values of one place in a document are compared (R16). It
// comes from a tool's schema: from the Go type of its arguments, or from the
// JSON Schema that a raw tool was given. A nil Shape compares as it is read.
type Shape struct {
	// Format names a string format that is compared as a value: "date-time",
	// "date", "decimal" or "uuid". Other formats are compared byte for byte.
	Format string
	// NullIsAbsent holds for an object's member that the handler can't tell
	// from a missing one: null is then dropped.
	NullIsAbsent bool
	// Fields, Items and Additional are the shapes of an object's named members,
	// of an array's elements, and of an object's other members.
	Fields     map[string]*Shape
	Items      *Shape
	Additional *Shape
}

func (s *Shape) has(name string) bool {
	if s == nil {
		return false
	}
	_, ok := s.Fields[name]
	return ok
}

// child is the shape of what a container has under a name, nil where none is known.
func (s *Shape) child(k Kind, name string) *Shape {
	switch {
	case s == nil:
		return nil
	case k == Array:
		return s.Items
	case s.has(name):
		return s.Fields[name]
	default:
		return s.Additional
	}
}
