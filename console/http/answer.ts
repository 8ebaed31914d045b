import { gzipSync } from 'node:zlib'
import type { VNode } from 'preact'
import { render } from 'preact-render-to-string'
import type { HttpRequest, HttpResponse } from '../../engine/http/port.ts'
import type { Asset } from '../assets.ts'
import { ASSET_BLOCK, PAGE_BLOCK } from './security.ts'

/** The answer of a route. server.ts adds the header fields that every answer has. */
export type Answer = PageAnswer | RedirectAnswer | FileAnswer

export interface PageAnswer {
  readonly kind: 'page'
  readonly status: number
  readonly document: VNode
  readonly cookies: readonly string[]
  /**
   * The page shows a secret and is sent uncompressed. With compression, the length of the answer
   * would depend on whether text from the request occurs in the secret.
   */
  readonly showsSecret: boolean
  /** Additional header fields, such as Retry-After: names and values alternate. */
  readonly fields: readonly string[]
}

interface RedirectAnswer {
  readonly kind: 'redirect'
  /** A path of this console, with its query. */
  readonly to: string
  readonly cookies: readonly string[]
}

export interface FileAnswer {
  readonly kind: 'file'
  readonly type: string
  /** The file name for the browser: ASCII letters, digits, dots and hyphens. */
  readonly name: string
  readonly body: string
  readonly cookies: readonly string[]
}

export interface PageOptions {
  readonly status?: number
  readonly cookies?: readonly string[]
  readonly showsSecret?: boolean
  readonly fields?: readonly string[]
}

export function pageAnswer(document: VNode, options: PageOptions = {}): PageAnswer {
  const { status = 200, cookies = [], showsSecret = false, fields = [] } = options
  return { kind: 'page', status, document, cookies, showsSecret, fields }
}

/** Answers 303, so that the browser requests `to` with GET. */
export function redirect(to: string, cookies: readonly string[] = []): RedirectAnswer {
  if (!isLocalPath(to)) throw new Error(`not a path of the console: ${JSON.stringify(to)}`)
  return { kind: 'redirect', to, cookies }
}

export function fileAnswer(type: string, name: string, body: string): FileAnswer {
  return { kind: 'file', type, name, body, cookies: [] }
}

/** Returns the answer with additional cookies. */
export function withCookies(answer: Answer, cookies: readonly string[]): Answer {
  return { ...answer, cookies: [...answer.cookies, ...cookies] }
}

/**
 * Whether the text is a path of this console, and no address that a browser would resolve to
 * another host.
 */
export function isLocalPath(text: string): boolean {
  return /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text) && text.length <= 2000
}

/**
 * Level for pages, which are compressed for each request. A page of 800 rows takes 5 ms, and is 3
 * KB smaller than at level 4.
 */
export const GZIP_LEVEL = 5
/** Compression does not make smaller bodies smaller. */
const GZIP_BYTES_MIN = 1000

interface SendOptions {
  /** The client accepts gzip. */
  readonly gzip: boolean
  readonly bodyOmitted: boolean
  readonly fields: readonly string[]
}

export function sendAnswer(response: HttpResponse, answer: Answer, { gzip, bodyOmitted, fields }: SendOptions): void {
  const all = [...fields]
  for (const cookie of answer.cookies) all.push('set-cookie', cookie)
  if (answer.kind === 'page') all.push(...answer.fields)
  if (answer.kind === 'redirect') {
    all.push('location', answer.to)
    response.send({ status: 303, body: '', fields: all, block: PAGE_BLOCK, bodyOmitted })
    return
  }
  const isPage = answer.kind === 'page'
  const text = isPage ? `<!doctype html>${render(answer.document)}` : answer.body
  all.push('content-type', isPage ? 'text/html; charset=utf-8' : answer.type)
  if (!isPage) all.push('content-disposition', `attachment; filename="${answer.name}"`)
  const isCompressed = gzip && text.length >= GZIP_BYTES_MIN && !(isPage && answer.showsSecret)
  if (isCompressed) all.push('content-encoding', 'gzip')
  const body = isCompressed ? gzipSync(text, { level: GZIP_LEVEL }) : text
  response.send({ status: isPage ? answer.status : 200, body, fields: all, block: PAGE_BLOCK, bodyOmitted })
}

export function sendAsset(request: HttpRequest, response: HttpResponse, asset: Asset): void {
  const gzip = /\bgzip\b/.test(request.header('accept-encoding'))
  const etag = gzip ? asset.gzipEtag : asset.etag
  const fields = ['etag', etag]
  const known = request
    .header('if-none-match')
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
  if (known.includes(etag) || known.includes('*')) {
    response.send({ status: 304, body: '', fields, block: ASSET_BLOCK })
    return
  }
  fields.push('content-type', asset.type)
  if (gzip) fields.push('content-encoding', 'gzip')
  const bodyOmitted = request.method === 'HEAD'
  response.send({ status: 200, body: gzip ? asset.gzip : asset.body, fields, block: ASSET_BLOCK, bodyOmitted })
}
