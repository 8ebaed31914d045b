import type { VNode } from 'preact'
import type { z } from 'zod'
import type { Action } from '../../engine/admin/actions.ts'
import { mayDo } from '../../engine/admin/audited-changes.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import type { CommandName, CommandParameters, CommandResult } from '../commands.ts'
import { Layout } from '../design/layout.tsx'
import { Notice } from '../design/parts.tsx'
import { RangeNotice } from '../design/range.tsx'
import { hasSavedViews, SavedViews } from '../design/saved-views.tsx'
import { type FormFields, type FormState, readForm, rejectedForm } from '../form.ts'
import type { Identity } from '../sign-in/session-reader.ts'
import type { Site } from '../site.ts'
import { type Answer, type PageAnswer, type PageOptions, pageAnswer, redirect } from './answer.ts'
import type { Cookies } from './cookies.ts'

/** The parts of a request that are read before its handler first waits. */
export interface RequestFacts {
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly path: string
  /** The origin of this console as browsers see it. */
  readonly origin: string
  readonly query: URLSearchParams
  readonly cookies: Cookies
  readonly address: string
  /** Another site linked here, so the browser did not send SameSite=Strict cookies. */
  readonly isCrossSite: boolean
  readonly userAgent: string
  /** The fields of a posted form. */
  readonly fields: FormFields
}

interface VisitPageOptions extends PageOptions {
  /** The form on the page, whose status and fields are those of the answer. */
  readonly form?: FormState
  /** What the page says after a change, by the query's `done`. */
  readonly done?: Readonly<Record<string, string>>
  /** A browser without scripts loads the page again after this time. */
  readonly reloadSeconds?: number | undefined
}

/** A request from a visitor, signed in or not. */
export class Guest {
  readonly site: Site
  readonly request: RequestFacts
  readonly identity: Identity | undefined
  /** The time of the request, the same for the whole page. */
  readonly nowMs: number

  constructor(site: Site, request: RequestFacts, identity: Identity | undefined) {
    this.site = site
    this.request = request
    this.identity = identity
    this.nowMs = site.clock.nowMs()
  }

  get theme(): 'light' | 'dark' | undefined {
    const theme = this.request.cookies.get('theme')
    return theme === 'light' || theme === 'dark' ? theme : undefined
  }

  /** The values of the form. `lists` are fields that may have several. @throws RejectedForm */
  read<S extends z.ZodType>(schema: S, lists: readonly string[] = []): z.output<S> {
    return readForm(schema, this.request.fields, lists)
  }

  /**
   * Runs the handler of a form. If it rejects the form, `again` shows the page with what was typed,
   * so that nobody types anything twice.
   */
  async submit(again: (form: FormState) => Answer, make: () => Promise<Answer>): Promise<Answer> {
    try {
      return await make()
    } catch (error) {
      const form = rejectedForm(error, this.request.fields)
      return this.site.store.environment.read(() => again(form))
    }
  }
}

/** A request from a signed-in user. */
export class Visit extends Guest {
  override readonly identity: Identity

  constructor(site: Site, request: RequestFacts, identity: Identity) {
    super(site, request, identity)
    this.identity = identity
  }

  get organization(): Organization {
    return this.identity.organization
  }

  /** Whether the member's role allows an action. Pages show only what the role allows. */
  may(action: Action): boolean {
    return mayDo(this.identity.member.role, action)
  }

  /**
   * Makes a change as this member.
   *
   * @throws Fault of the use case, which checks the role again; OverloadError.
   */
  change<N extends CommandName>(command: N, parameters: CommandParameters<N>): Promise<CommandResult<N>> {
    const by = { organizationId: this.organization.id, memberName: this.identity.member.name }
    return this.site.changes.make(command, by, parameters)
  }

  /**
   * Answers a form with a redirect to a page that shows `value` once: see shownOnce().
   *
   * @param to the path of the page, with its query
   */
  redirectToShow(to: string, value: unknown): Answer {
    const [path = '', query = ''] = to.split('?')
    const parameters = new URLSearchParams(query)
    parameters.set('shown', this.site.shownOnce.keep(this.#owner, path, value, this.nowMs))
    return redirect(`${path}?${parameters}`)
  }

  get #owner(): string {
    return `${this.identity.session.id} ${this.organization.id}`
  }

  /** The value of redirectToShow(), which the page of this request shows. */
  shownOnce<Value>(): Value | undefined {
    const id = this.request.query.get('shown')
    if (id === null || this.request.method !== 'GET') return undefined
    const { path } = this.request
    return this.site.shownOnce.take(this.#owner, path, id, this.nowMs) as Value | undefined
  }

  #savedViews(): VNode | null {
    const { path, query, method } = this.request
    if (method === 'POST' || !hasSavedViews(path)) return null
    const views = this.site.store.savedViews.ofOrganization(this.organization.id)
    return SavedViews({ path, query, views, maySave: this.may('view.save') })
  }

  /** Returns the page with the navigation. `here` is the path of its entry in the navigation. */
  page(title: string, here: string, content: VNode, options: VisitPageOptions = {}): PageAnswer {
    const { user, member, organization, organizations } = this.identity
    const { query } = this.request
    const { form, done = {}, reloadSeconds, ...rest } = options
    const change = this.request.method === 'POST' ? '' : (query.get('done') ?? '')
    const notice = Object.hasOwn(done, change) ? done[change] : undefined
    const document = Layout({
      title,
      here,
      theme: this.theme,
      // A form may have a path of its own, which answers no GET.
      path: this.request.method === 'POST' ? here || '/' : this.request.path,
      userName: user.name,
      role: member.role,
      organization,
      organizations,
      may: (action) => this.may(action),
      reloadSeconds,
      children: [
        // The query of a form has other parameters, such as the page that the form is on.
        this.request.method === 'GET' &&
          RangeNotice({ query, windowDays: organization.evidenceWindowDays, nowMs: this.nowMs }),
        this.#savedViews(),
        notice !== undefined && Notice({ title: notice }),
        content,
      ],
    })
    return pageAnswer(document, { ...form, ...rest })
  }
}
