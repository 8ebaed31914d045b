/**
 * Whether a client accepts gzip (RFC 9110 §12.5.3): by name or by `*`, and not with a weight of 0.
 */
export function acceptsGzip(acceptEncoding: string): boolean {
  if (acceptEncoding === '') return false
  let byStar = false
  for (const part of acceptEncoding.split(',')) {
    const [coding = '', ...parameters] = part.split(';')
    const name = coding.trim().toLowerCase()
    if (name !== 'gzip' && name !== 'x-gzip' && name !== '*') continue
    const takes = !parameters.some((parameter) => /^\s*q\s*=\s*0(\.0{0,3})?\s*$/i.test(parameter))
    if (name !== '*') return takes
    byStar = takes
  }
  return byStar
}
