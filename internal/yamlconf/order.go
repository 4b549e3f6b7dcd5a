package yamlconf

// Map is a map whose keys are data, in the order of the file.
type Map[T any] []Entry[T]

// Entry is one key of a Map, with its value and the place of the key. The place
// is no part of its JSON: a file whose lines were moved says the same.
type Entry[T any] struct {
	Key   string
	Value T
	Pos   Pos `json:"-"`
}

// Get returns the value of a key.
func (m Map[T]) Get(key string) (T, bool) {
	for i := range m {
		if m[i].Key == key {
			return m[i].Value, true
		}
	}
	var zero T
	return zero, false
}

// UnmarshalNode implements Unmarshaler.
func (m *Map[T]) UnmarshalNode(n Node) error {
	if n.Kind() != KindMap {
		n.doc.wrongKind(n.n, "a map", "write one line key: value for each")
		return errReported
	}
	*m = make(Map[T], 0, len(n.n.items))
	for _, item := range n.Items() {
		e := Entry[T]{}
		e.Key, e.Pos = item.Key()
		_ = item.Decode(&e.Value) // Reported; the entry stays for later checks.
		*m = append(*m, e)
	}
	return nil
}
