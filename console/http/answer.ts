import type { VNode } from 'preact'

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

export interface RedirectAnswer {
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
  /** A browser without scripts loads the page again after this time. */
  readonly reloadSeconds?: number | undefined
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

/** For the browser script. */
export function jsonAnswer(value: object): FileAnswer {
  return { kind: 'file', type: 'application/json', name: 'answer.json', body: JSON.stringify(value), cookies: [] }
}

export function csvAnswer(name: string, body: string): FileAnswer {
  return { kind: 'file', type: 'text/csv; charset=utf-8; header=present', name, body, cookies: [] }
}

export function textFileAnswer(name: string, body: string): FileAnswer {
  return { kind: 'file', type: 'text/plain; charset=utf-8', name, body, cookies: [] }
}

export function htmlFileAnswer(name: string, body: string): FileAnswer {
  return { kind: 'file', type: 'text/html; charset=utf-8', name, body, cookies: [] }
}

export function jsonFileAnswer(name: string, value: unknown): FileAnswer {
  return { kind: 'file', type: 'application/json', name, body: `${JSON.stringify(value, undefined, 2)}\n`, cookies: [] }
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
