import type { VNode } from 'preact'

/** What a route answers; server.ts adds the fields that every answer has. */
export type Answer = PageAnswer | RedirectAnswer | FileAnswer

export interface PageAnswer {
  readonly kind: 'page'
  readonly status: number
  readonly document: VNode
  readonly cookies: readonly string[]
  /**
   * The page shows a secret. It is sent without compression: with it, the length of the answer
   * would depend on whether text from the request occurs in the secret.
   */
  readonly showsSecret: boolean
  /** More fields, such as Retry-After: names and values in turn. */
  readonly fields: readonly string[]
}

export interface RedirectAnswer {
  readonly kind: 'redirect'
  /** A path of this console, with its query. */
  readonly to: string
  readonly cookies: readonly string[]
}

export interface FileAnswer {
  readonly kind: 'file'
  readonly type: string
  /** The name under which a browser saves the file: ASCII letters, digits, dots and hyphens. */
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

/** Answers 303, so that the browser asks for `to` by GET. */
export function redirect(to: string, cookies: readonly string[] = []): RedirectAnswer {
  if (!isLocalPath(to)) throw new Error(`not a path of the console: ${JSON.stringify(to)}`)
  return { kind: 'redirect', to, cookies }
}

export function csvAnswer(name: string, body: string): FileAnswer {
  return { kind: 'file', type: 'text/csv; charset=utf-8; header=present', name, body, cookies: [] }
}

/** The same answer with more cookies. */
export function withCookies(answer: Answer, cookies: readonly string[]): Answer {
  return { ...answer, cookies: [...answer.cookies, ...cookies] }
}

/**
 * Whether this is a path of this console, and not an address that a browser would take for another
 * host.
 */
export function isLocalPath(text: string): boolean {
  return /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/.test(text) && text.length <= 2000
}
