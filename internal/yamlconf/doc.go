// Package yamlconf decodes one strict YAML document into Go values and reports
// every fault at once, each with file, line, column, the path of the value and
// a caret under the place. It knows no domain type: a package that does hands
// in its structs, then adds the faults of its own checks to the same Doc.
//
//	var c Config
//	doc, err := yamlconf.Decode("pegasus.yaml", src, &c)
//	if doc == nil {
//		return err // Not YAML, or beyond a limit: there is nothing to check.
//	}
//	for _, p := range c.Predicates {
//		if err := compile(p.Value.When); err != nil {
//			doc.FaultIn(path, err.Offset, "%v", err)
//		}
//	}
//	return doc.Err()
//
// The accepted language is the part of YAML 1.2 a config needs: block and flow
// maps and lists, plain, quoted and block scalars, comments, one document.
// Refused are anchors, aliases, tags, directives, merge keys, keys written with
// "?", duplicate keys, tabs, control characters and a byte order mark. A key
// without a value is a fault, never a silent zero.
//
// Struct fields are matched by the tag `yaml:"name"`; `yaml:"name,required"`
// makes a missing key a fault, and so an empty text. Fields without a tag are left alone, and a field
// whose key is missing keeps the value it had, so defaults are set before
// Decode. Supported are string, bool, the integers, floats (also +inf and
// -inf), time.Duration ("200ms"), slices, pointers, structs, Map for maps whose
// keys are data, Node for a part to decode later, and every type that
// implements Unmarshaler. Scalars are not coerced: a number where text is
// wanted is a fault that says to quote it.
//
// Work and memory are bounded by the limits in limits.go, all checked before
// the YAML parser runs. Nothing here is safe for concurrent use.
package yamlconf
