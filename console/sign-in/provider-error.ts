/**
 * A sign-in with an identity provider that failed. The message is for people: what was wrong,
 * where, and what would be right. It contains no secret, code or token.
 */
export class ProviderError extends Error {
  override readonly name = 'ProviderError'
}
