import { FieldBlock } from '../../engine/http/fields.ts'
import type { HttpRequest } from '../../engine/http/port.ts'

const POLICY = [
  "default-src 'none'",
  "style-src 'self'",
  "script-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "form-action 'self'",
  "base-uri 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ')

const SECURITY = [
  'content-security-policy',
  POLICY,
  'x-content-type-options',
  'nosniff',
  // With no-referrer, browsers would send `Origin: null` with a form.
  'referrer-policy',
  'same-origin',
  'cross-origin-opener-policy',
  'same-origin',
  'cross-origin-resource-policy',
  'same-origin',
  'permissions-policy',
  'camera=(), microphone=(), geolocation=(), payment=(), usb=()',
] as const

/** For every answer that depends on the user. No cache stores it, including that of the browser. */
export const PAGE_BLOCK = new FieldBlock([...SECURITY, 'cache-control', 'no-store', 'vary', 'Cookie, Accept-Encoding'])

/** For style sheets, scripts and pictures, whose address changes with their content. */
export const ASSET_BLOCK = new FieldBlock([
  ...SECURITY,
  'cache-control',
  'public, max-age=31536000, immutable',
  'vary',
  'Accept-Encoding',
])

/**
 * The origin of this console as browsers see it.
 *
 * @param origin the public origin; '' if the Host field has it
 */
export function originOf(request: HttpRequest, origin: string, scheme: 'https' | 'http'): string {
  return origin === '' ? `${scheme}://${request.header('host')}` : origin
}

/**
 * Returns why a POST is rejected, or undefined if it came from a page of this console. Both fields
 * are required. A SameSite=Strict cookie is no proof: browsers also send it with forms from another
 * port of the same host.
 *
 * @param expected the origin of this console
 */
export function crossSiteFault(request: HttpRequest, expected: string): string | undefined {
  const site = request.header('sec-fetch-site')
  if (site !== 'same-origin') {
    const found = site === '' ? 'no Sec-Fetch-Site field' : `Sec-Fetch-Site: ${site}`
    return `The form did not come from this console (${found})`
  }
  const found = request.header('origin')
  if (found === expected) return undefined
  return found === ''
    ? 'The form did not come from this console (no Origin field)'
    : 'The form did not come from this console (another Origin). After a proxy, set --console-origin'
}
