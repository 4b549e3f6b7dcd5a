package yamlconf

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// parseText turns text that passed checkBytes into a tree, or reports why not and
// returns nil. Only this file and place.go know the parser's types.
func (d *Doc) parseText(text string) (root *node) {
	defer func() {
		// The parser panics on some malformed input; that is a fault of the
		// file, whose place we do not know.
		if r := recover(); r != nil {
			root = nil
			d.addFault(Fault{
				Message: "the YAML parser gave up on this file",
				Hint:    "look for an unfinished bracket, quote or key, and write it in a simpler form",
			})
		}
	}()
	tokens := lexer.Tokenize(text)
	if !d.checkTokens(tokens) {
		return nil
	}
	// Duplicate keys are allowed here so that convert finds all of them.
	file, err := parser.Parse(tokens, 0, parser.AllowDuplicateMapKey())
	if err != nil {
		d.addFault(d.syntaxFault(err))
		return nil
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		d.addFault(Fault{Message: "the file holds no value, only comments or separators"})
		return nil
	}
	return d.convert(file.Docs[0].Body, &node{})
}

// syntaxFault keeps the place and the first line of a parser's error. Where the line has a value
// that had to be quoted, that is the fault.
func (d *Doc) syntaxFault(err error) Fault {
	f := Fault{Message: err.Error()}
	if e, ok := errors.AsType[yaml.Error](err); ok {
		f.Message = e.GetMessage()
		if tk := e.GetToken(); tk != nil {
			f.Pos = tokenPos(tk)
		}
	}
	if f.Line > 0 && f.Line <= len(d.lines) {
		if column, message := unquoted(d.lines[f.Line-1]); column > 0 {
			return Fault{Pos: Pos{f.Line, column}, Message: message, Hint: "quote the whole value, an expression in single quotes: when: 'any(members, .role == \"a\")'"}
		}
	}
	f.Message, _, _ = strings.Cut(f.Message, "\n")
	if strings.Contains(f.Message, "value is not allowed in this context") {
		f.Hint = "check the indentation here and on the lines below: keys of a mapping begin in the same column, and a key with a value on its line has no keys below it"
	}
	f.Message = "not valid YAML: " + f.Message
	return f
}

// keyed is a line with a key and a value that is a plain or a quoted text.
var keyed = regexp.MustCompile(`^[ -]*[\w.-]+: +([^\s\[{|>&*!#%@].*)$`)

// unquoted finds the column, from 1, at which a value on a line stops being one text for YAML: a
// colon inside a plain text, or text behind a closing quote. It is 0 if there is none.
func unquoted(line string) (column int, message string) {
	m := keyed.FindStringSubmatchIndex(line)
	if m == nil {
		return 0, ""
	}
	value, at := line[m[2]:], 0
	switch quote := value[0]; quote {
	case '"', '\'':
		end := 1
		for end < len(value) && value[end] != quote {
			if quote == '"' && value[end] == '\\' {
				end++
			}
			end++
		}
		rest := ""
		if end < len(value) {
			rest = strings.TrimLeft(value[end+1:], " ")
		}
		if at = len(value) - len(rest); rest == "" || rest[0] == '#' || rest[0] == quote {
			return 0, ""
		}
		message = "text behind the closing quote"
	default:
		text, _, _ := strings.Cut(value, " #")
		if at = strings.Index(text+" ", ": "); at < 0 {
			return 0, ""
		}
		message = "a colon inside a value that is not quoted"
	}
	return 1 + utf8.RuneCountInString(line[:m[2]+at]), message
}

func tokenPos(tk *token.Token) Pos {
	if tk.Position == nil {
		return Pos{1, 1}
	}
	return Pos{max(tk.Position.Line, 1), max(tk.Position.Column, 1)}
}

// checkTokens refuses what the accepted language leaves out, and everything
// that would make the recursive parser deep or slow.
func (d *Doc) checkTokens(tokens token.Tokens) bool {
	before := len(d.list)
	depth, keys, content := 0, 0, false
	var open maps
	for _, tk := range tokens {
		message, hint := refused(tk, content)
		switch tk.Type { //nolint:exhaustive // Only these nest or count.
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.MappingValueType:
			keys++
		}
		siblings := 0
		if depth == 0 && startsBlock(tk) {
			siblings = open.enter(tk.Position.Column, isKey(tk))
		}
		stop := tk.Type == token.InvalidType || depth > maxFlowDepth || keys > maxKeys || siblings > maxMapKeys
		switch {
		case message != "":
		case depth > maxFlowDepth:
			message, hint = fmt.Sprintf("more than %d brackets inside each other", maxFlowDepth), "write the outer levels as indented lines"
		case keys > maxKeys:
			message, hint = fmt.Sprintf("more than %d keys", maxKeys), "split the file"
		case siblings > maxMapKeys:
			message, hint = fmt.Sprintf("more than %d keys in one map", maxMapKeys), "split the file"
		case isKey(tk) && len(tk.Value) > maxKeyBytes:
			message, hint = fmt.Sprintf("a key longer than %d bytes", maxKeyBytes), "shorten it, or quote the value if it is text with a colon"
		case depth == 0 && startsBlock(tk) && tk.Position.Column > maxColumn:
			message, hint = fmt.Sprintf("a value nested deeper than column %d", maxColumn), "indent by two spaces, and nest less"
			stop = true
		}
		if message != "" {
			d.addFault(Fault{Pos: tokenPos(tk), Message: message, Hint: hint})
		}
		if stop {
			return false // What follows would repeat this fault.
		}
		content = content || tk.Type != token.CommentType
	}
	return len(d.list) == before
}

// maps are the block maps that are open, by the columns of their keys.
type maps []struct{ column, keys int }

// enter takes the place of a key or of a dash, and returns how many keys its map
// has so far.
func (m *maps) enter(column int, key bool) int {
	list := *m
	for len(list) > 0 && list[len(list)-1].column > column {
		list = list[:len(list)-1]
	}
	if n := len(list); key && (n == 0 || list[n-1].column < column) {
		list = append(list, struct{ column, keys int }{column, 0})
	}
	*m = list
	if !key {
		return 0
	}
	list[len(list)-1].keys++
	return list[len(list)-1].keys
}

// startsBlock reports whether the token opens an item of a list or an entry of
// a map.
func startsBlock(tk *token.Token) bool { return tk.Type == token.SequenceEntryType || isKey(tk) }

func isKey(tk *token.Token) bool { return tk.Next != nil && tk.Next.Type == token.MappingValueType }

// refused says what is wrong with a token by its type alone; content tells
// whether anything but comments came before.
func refused(tk *token.Token, content bool) (message, hint string) {
	switch tk.Type { //nolint:exhaustive // The other types are accepted.
	case token.AnchorType, token.AliasType:
		return "anchors and aliases (& and *) are refused", "write the value out, or quote it if it is text"
	case token.TagType:
		return "tags (!) are refused", "leave the tag out, or quote the value if it is text"
	case token.MergeKeyType:
		return "merge keys (<<) are refused", "write the keys out"
	case token.MappingKeyType:
		return `keys written with "?" are refused`, "write key: value"
	case token.DirectiveType:
		return "directives (%) are refused", "leave the line out"
	case token.DocumentHeaderType:
		if content {
			return "a second document", "one file holds one document; remove the line"
		}
	case token.DocumentEndType:
		return "a document end marker", "remove the line"
	case token.InvalidType:
		return "not valid YAML: " + tk.Error, ""
	}
	return "", ""
}

// convert fills a node, whose place in the tree is set, from a syntax tree and
// reports duplicate keys.
func (d *Doc) convert(n ast.Node, to *node) *node {
	switch n := n.(type) {
	case *ast.MappingNode:
		to.kind, to.pos = KindMap, tokenPos(n.GetToken())
		if !n.IsFlowStyle && len(n.Values) > 0 {
			to.pos = d.placeOf(n.Values[0].Key.GetToken())
		}
		d.convertEntries(n.Values, to)
	case *ast.SequenceNode:
		to.kind, to.pos = KindList, tokenPos(n.Start)
		for i, v := range n.Values {
			to.items = append(to.items, d.convert(v, &node{parent: to, number: i}))
		}
	case *ast.LiteralNode:
		to.kind, to.pos = KindText, tokenPos(n.Start)
		to.text, to.style = n.Value.GetToken().Value, styleBlock
	case *ast.NullNode, *ast.BoolNode, *ast.IntegerNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode, *ast.StringNode:
		d.setScalar(to, n.GetToken())
	default:
		to.pos = tokenPos(n.GetToken())
		d.faultAt(to, "write a scalar, a map or a list", "YAML of this form is refused")
	}
	return to
}

func (d *Doc) setScalar(n *node, tk *token.Token) {
	n.kind, n.text, n.pos = KindText, tk.Value, d.placeOf(tk)
	switch tk.Type {
	case token.SingleQuoteType:
		n.style = styleSingle
	case token.DoubleQuoteType:
		n.style = styleDouble
	case token.ImplicitNullType:
		n.kind, n.text = KindNull, ""
		if n.keyPos != (Pos{}) {
			n.pos = n.keyPos // An absent value has no place of its own.
		}
	default:
		n.kind = plainKind(n.text)
	}
}

func (d *Doc) convertEntries(entries []*ast.MappingValueNode, to *node) {
	seen := make(map[string]Pos, len(entries))
	for _, e := range entries {
		tk := e.Key.GetToken()
		v := d.convert(e.Value, &node{parent: to, key: tk.Value, keyPos: d.placeOf(tk)})
		if first, ok := seen[v.key]; ok {
			d.addFault(Fault{
				Pos: v.keyPos, Path: v.pathOf(),
				Message: fmt.Sprintf("key %q is given twice", v.key),
				Hint:    fmt.Sprintf("the first is in line %d; remove one of them", first.Line),
			})
			continue
		}
		seen[v.key] = v.keyPos
		to.items = append(to.items, v)
	}
}
