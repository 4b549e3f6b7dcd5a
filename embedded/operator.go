package embedded

import (
	"errors"
	"fmt"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
)

// maxControlLine is how many bytes a client may send before the payload: its JWT, whose tags are many for some users.
const maxControlLine = 65536

// addOperator has the server trust the operator of the options, and returns the public key of the operator.
func addOperator(o *Options, so *server.Options) (operator string, err error) {
	trusted, err := jwt.DecodeOperatorClaims(o.Operator)
	if err != nil {
		return "", fmt.Errorf("embedded: operator: %w", err)
	}
	resolver := &server.MemAccResolver{}
	for _, token := range o.Accounts {
		claims, err := decodeAccount(token, trusted.Subject)
		if err != nil {
			return "", err
		}
		if err := resolver.Store(claims.Subject, token); err != nil {
			return "", fmt.Errorf("embedded: account %s: %w", claims.Subject, err)
		}
	}
	so.TrustedOperators, so.AccountResolver, so.SystemAccount = []*jwt.OperatorClaims{trusted}, resolver, trusted.SystemAccount
	so.MaxControlLine, so.NoSystemAccount = maxControlLine, false
	return trusted.Subject, nil
}

// decodeAccount refuses a JWT that the operator has not signed.
func decodeAccount(token, operator string) (*jwt.AccountClaims, error) {
	claims, err := jwt.DecodeAccountClaims(token) // It checks the signature.
	if err != nil {
		return nil, fmt.Errorf("embedded: account: %w", err)
	}
	if claims.Issuer != operator {
		return nil, fmt.Errorf("embedded: account %s: another operator has signed it: start the server again to follow that", claims.Subject)
	}
	return claims, nil
}

// UpdateAccount replaces the JWT of an account of [Options.Accounts], while the server runs. Clients whose key it revokes are cut
// off, and changed permissions apply to the others. The operator must be the same. After an error the account is as it was.
func (s *Server) UpdateAccount(token string) error {
	if s.operator == "" {
		return errors.New("embedded: the server has no accounts: start it with Options.Operator")
	}
	claims, err := decodeAccount(token, s.operator)
	if err != nil {
		return err
	}
	account, err := s.nats.LookupAccount(claims.Subject)
	if err != nil {
		return fmt.Errorf("embedded: account %s: the server does not have it: start the server again to follow that: %w", claims.Subject, err)
	}
	if err := s.nats.AccountResolver().Store(claims.Subject, token); err != nil {
		return fmt.Errorf("embedded: account %s: %w", claims.Subject, err)
	}
	s.nats.UpdateAccountClaims(account, claims)
	return nil
}
