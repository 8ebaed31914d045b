/** `q=0.5` (RFC 9110 §12.4.2); anything else counts as 1. */
const WEIGHT = /^\s*q=(0(?:\.\d{0,3})?)\s*$/i

let lastField = ''
let lastAnswer = false

/**
 * Whether a client accepts gzip (RFC 9110 §12.5.3), by name or by `*`, and does not prefer an
 * answer that is not compressed.
 */
export function acceptsGzip(acceptEncoding: string): boolean {
  // Most clients send the same field.
  if (acceptEncoding !== lastField) {
    lastAnswer = prefersGzip(acceptEncoding)
    lastField = acceptEncoding
  }
  return lastAnswer
}

function prefersGzip(acceptEncoding: string): boolean {
  let gzip: number | undefined
  let others = 0
  let identity: number | undefined
  for (const part of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = part.split(';')
    const name = coding.trim().toLowerCase()
    const weight = Number(parameters.map((parameter) => WEIGHT.exec(parameter)?.[1]).find(Boolean) ?? 1)
    // The same coding (RFC 9110 §8.4.1.3).
    if (name === 'gzip' || name === 'x-gzip') gzip = Math.max(gzip ?? 0, weight)
    else if (name === '*') others = weight
    else if (name === 'identity') identity = weight
  }
  return (gzip ?? others) > 0 && (gzip ?? others) >= (identity ?? others)
}
