// Package ntp exchanges packets with NTP servers (RFC 5905) for the package source:
//
//	servers, err := source.NTP(ntp.Query, source.NTPOptions{Servers: []string{"a", "b", "c"}})
//
// It is a package of its own so that only programs that ask NTP servers link an NTP client.
package ntp
