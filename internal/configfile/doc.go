// Package configfile reads the files that people write: [Parse] a configuration,
// [ParseProgram] a program with the synchronizers whose predicates it reads. Every
// fault of a file is told at once, with its place. [Show] and [FormatProgram] write
// such files, [JSONSchema] describes them for editors.
package configfile
