import type { Action } from '../../engine/admin/actions.ts'
import type { ClientReading } from '../../engine/admin/clients.ts'
import type { CommandName, CommandParameters } from '../commands.ts'
import type { FormState } from '../form.ts'
import type { Upload } from '../try-file/upload.ts'
import { type Answer, redirect } from './answer.ts'
import type { Guest, Visit } from './visit.ts'

/** The names of the parameters in a path. `'/platforms/:id'` has `id`. */
type NamesIn<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? Name | NamesIn<`/${Rest}`>
  : Path extends `${string}:${infer Name}`
    ? Name
    : never

/** The parameters of a path, decoded. */
export type Parameters<Path extends string> = Readonly<Record<NamesIn<Path>, string>>

/**
 * The required access of a route: anyone, any signed-in user, or members whose role allows an
 * action.
 */
export type Access = 'anyone' | 'signed-in' | Action

export interface RouteOptions {
  /** The change requires that the user proved their identity in the last ten minutes. */
  readonly confirmed?: boolean
  /** Fields that no page repeats, such as a client secret. */
  readonly secretFields?: readonly string[]
  /** Maximum bytes of the body of a POST. FORM_BYTES_MAX if absent. */
  readonly bodyBytesMax?: number
  /** Maximum fields of a form. FORM_FIELDS_MAX if absent. */
  readonly fieldsMax?: number
}

export type Route = RouteOptions & {
  readonly method: 'GET' | 'POST'
  readonly path: string
} & (
    | {
        readonly access: 'anyone'
        readonly handle: (guest: Guest, parameters: Readonly<Record<string, string>>) => Answer | Promise<Answer>
      }
    | {
        readonly access: Exclude<Access, 'anyone'>
        readonly handle: (visit: Visit, parameters: Readonly<Record<string, string>>) => Answer | Promise<Answer>
      }
    | {
        readonly access: Action
        /** Reads the body of the request itself, and must begin before it first waits. */
        readonly receive: (visit: Visit, upload: Upload) => Promise<Answer>
      }
  )

/**
 * A page for signed-in users. `handle` reads one snapshot of the store, so it must be synchronous.
 */
export function page<Path extends string>(
  path: Path,
  access: Exclude<Access, 'anyone'>,
  handle: (visit: Visit, parameters: Parameters<Path>) => Answer,
): Route {
  return { method: 'GET', path, access, handle: handle as (visit: Visit, parameters: object) => Answer }
}

/**
 * A page that names people. Reading it is in the audit log, once for each member, subject and hour;
 * the entry is sent to the writer before the page is read.
 *
 * @param readingOf what the page is about, if it names anyone; throws Fault NOT_FOUND
 */
export function auditedPage<Path extends string>(
  path: Path,
  readingOf: (visit: Visit, parameters: Parameters<Path>) => ClientReading | undefined,
  handle: (visit: Visit, parameters: Parameters<Path>) => Answer,
): Route {
  const audited = async (visit: Visit, parameters: Parameters<Path>): Promise<Answer> => {
    const reading = readingOf(visit, parameters)
    if (reading !== undefined) await visit.change('client.read', reading)
    return visit.site.store.environment.read(() => handle(visit, parameters))
  }
  return {
    method: 'GET',
    path,
    access: 'client.read',
    handle: audited as (visit: Visit, parameters: object) => Promise<Answer>,
  }
}

export interface FormOptions<Path extends string> extends RouteOptions {
  /** The page that shows a rejected form again, with what was typed: Visit.submit(). */
  readonly again?: (visit: Visit, form: FormState, parameters: Parameters<Path>) => Answer
}

/** A form for signed-in users. */
export function form<Path extends string>(
  path: Path,
  access: Exclude<Access, 'anyone'>,
  handle: (visit: Visit, parameters: Parameters<Path>) => Answer | Promise<Answer>,
  { again, ...options }: FormOptions<Path> = {},
): Route {
  const submit = (visit: Visit, parameters: Parameters<Path>): Answer | Promise<Answer> =>
    again === undefined
      ? handle(visit, parameters)
      : visit.submit(
          (state) => again(visit, state, parameters),
          async () => handle(visit, parameters),
        )
  return { ...options, method: 'POST', path, access, handle: submit as (visit: Visit, parameters: object) => Answer }
}

/** A form that makes one change, which has the name of the action, and leads to a page. */
export function changeForm<Path extends string, N extends CommandName>(
  path: Path,
  command: N,
  given: (parameters: Parameters<Path>, visit: Visit) => CommandParameters<N>,
  to: string | ((parameters: Parameters<Path>) => string),
  options: FormOptions<Path> = {},
): Route {
  const change = async (visit: Visit, parameters: Parameters<Path>): Promise<Answer> => {
    await visit.change(command, given(parameters, visit))
    return redirect(typeof to === 'string' ? to : to(parameters))
  }
  return form(path, command, change, options)
}

/** A form with a file, whose body is never in memory as a whole. */
export function uploadForm(
  path: string,
  access: Action,
  receive: (visit: Visit, upload: Upload) => Promise<Answer>,
): Route {
  return { method: 'POST', path, access, receive }
}

/** A page for any visitor. */
export function openPage<Path extends string>(
  path: Path,
  handle: (guest: Guest, parameters: Parameters<Path>) => Answer | Promise<Answer>,
): Route {
  return { method: 'GET', path, access: 'anyone', handle: handle as (guest: Guest, parameters: object) => Answer }
}

/** A form for any visitor. */
export function openForm(path: string, handle: (guest: Guest) => Answer | Promise<Answer>): Route {
  return { method: 'POST', path, access: 'anyone', handle }
}

export interface Found {
  readonly route: Route
  readonly parameters: Readonly<Record<string, string>>
}

/** Finds the route of a request. Paths without parameters take precedence. */
export class Router {
  readonly #exact = new Map<string, Route[]>()
  readonly #patterns: { readonly parts: readonly string[]; readonly route: Route }[] = []

  constructor(routes: readonly Route[]) {
    for (const route of routes) {
      if (this.find(route.method, route.path)?.route.path === route.path)
        throw new Error(`two routes for ${route.method} ${route.path}`)
      if (route.path.includes(':')) this.#patterns.push({ parts: route.path.split('/'), route })
      else this.#exact.set(route.path, [...(this.#exact.get(route.path) ?? []), route])
    }
  }

  find(method: 'GET' | 'POST', path: string): Found | undefined {
    const exact = this.#exact.get(path)
    if (exact !== undefined) {
      const route = exact.find((each) => each.method === method)
      return route && { route, parameters: {} }
    }
    const given = path.split('/')
    for (const { parts, route } of this.#patterns) {
      if (route.method !== method) continue
      const parameters = matched(parts, given)
      if (parameters !== undefined) return { route, parameters }
    }
    return undefined
  }

  /** The allowed methods of a path. */
  methodsOf(path: string): string[] {
    const methods: string[] = []
    if (this.find('GET', path) !== undefined) methods.push('GET', 'HEAD')
    if (this.find('POST', path) !== undefined) methods.push('POST')
    return methods
  }
}

function matched(parts: readonly string[], given: readonly string[]): Record<string, string> | undefined {
  if (parts.length !== given.length) return undefined
  const parameters: Record<string, string> = {}
  for (const [at, part] of parts.entries()) {
    const value = given[at] ?? ''
    if (part.startsWith(':')) {
      const decoded = decodedPart(value)
      if (decoded === undefined || decoded === '') return undefined
      parameters[part.slice(1)] = decoded
    } else if (part !== value) return undefined
  }
  return parameters
}

/** undefined if the text is not valid percent-encoded UTF-8. */
function decodedPart(text: string): string | undefined {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}
