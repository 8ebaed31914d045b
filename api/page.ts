/** Limits of a page in the specification. */
export const LIMIT_DEFAULT = 100
export const LIMIT_MAX = 100
export const OFFSET_MAX = Number.MAX_SAFE_INTEGER

export interface Page {
  readonly limit: number
  readonly offset: number
}

/** Returns the page of a query, or the message for a 400. Ignores unknown parameters. */
export function pageOf(query: string): Page | string {
  if (query === '') return { limit: LIMIT_DEFAULT, offset: 0 }
  const parameters = new URLSearchParams(query)
  const limit = wholeNumber(parameters, 'limit', LIMIT_DEFAULT, 1, LIMIT_MAX)
  if (typeof limit === 'string') return limit
  const offset = wholeNumber(parameters, 'offset', 0, 0, OFFSET_MAX)
  if (typeof offset === 'string') return offset
  return { limit, offset }
}

function wholeNumber(
  parameters: URLSearchParams,
  name: string,
  byDefault: number,
  min: number,
  max: number,
): number | string {
  const values = parameters.getAll(name)
  if (values.length === 0) return byDefault
  const expected = `a whole number from ${min} to ${max}`
  if (values.length > 1) return `Invalid ${name}: expected it once`
  const text = values[0] ?? ''
  const value = Number(text)
  if (!/^\d{1,16}$/.test(text) || value < min || value > max) return `Invalid ${name}: expected ${expected}`
  return value
}
