package yamlconf

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Path joins keys to a path as the methods of Doc take it. Keys with other
// characters than letters, digits, "-" and "_" are quoted. The item of a list
// is appended as it is: Path("state", "phase") + "[2]".
func Path(keys ...string) string {
	path := ""
	for _, k := range keys {
		if path != "" {
			path += "."
		}
		path += quoteKey(k)
	}
	return path
}

var plainKey = regexp.MustCompile(`^[\pL\pN_-]+$`)

func quoteKey(key string) string {
	if plainKey.MatchString(key) {
		return key
	}
	return strconv.Quote(key)
}

// pathOf returns the path of a node. It is built when asked for, because the
// paths of all nodes together can be far longer than the file.
func (n *node) pathOf() string {
	var steps []string
	for ; n.parent != nil; n = n.parent {
		switch {
		case n.parent.kind == KindList:
			steps = append(steps, "["+strconv.Itoa(n.number)+"]")
		case n.parent.parent == nil:
			steps = append(steps, quoteKey(n.key))
		default:
			steps = append(steps, "."+quoteKey(n.key))
		}
	}
	var b strings.Builder
	for _, step := range slices.Backward(steps) {
		b.WriteString(step)
	}
	return b.String()
}

// findPath returns the node at a path, or the last one on the way there and false.
func (n *node) findPath(path string) (*node, bool) {
	for path != "" {
		var child *node
		if child, path = n.step(path); child == nil {
			return n, false
		}
		n = child
	}
	return n, true
}

// step returns the child that the first step of a path names and the path from
// there on, or nil.
func (n *node) step(path string) (*node, string) {
	path = strings.TrimPrefix(path, ".")
	if number, ok := strings.CutPrefix(path, "["); ok {
		digits, rest, _ := strings.Cut(number, "]")
		i, err := strconv.Atoi(digits)
		if err != nil || n.kind != KindList || i < 0 || i >= len(n.items) {
			return nil, ""
		}
		return n.items[i], rest
	}
	key, rest := path, ""
	if quoted, err := strconv.QuotedPrefix(path); err == nil {
		rest = path[len(quoted):]
		key, _ = strconv.Unquote(quoted)
	} else if i := strings.IndexAny(path, ".["); i >= 0 {
		key, rest = path[:i], path[i:]
	}
	return n.childOf(key), rest
}

// childOf returns the value of a key, or nil.
func (n *node) childOf(key string) *node {
	if n.kind != KindMap {
		return nil
	}
	for _, v := range n.items {
		if v.key == key {
			return v
		}
	}
	return nil
}
