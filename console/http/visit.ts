import type { VNode } from 'preact'
import type { Action } from '../../engine/admin/actions.ts'
import { mayDo } from '../../engine/admin/changes.ts'
import type { Clock } from '../../engine/process/clock.ts'
import type { Member } from '../../engine/store/members.ts'
import type { Organization } from '../../engine/store/organizations.ts'
import type { RegistryInForce } from '../../engine/store/registry-in-force.ts'
import type { Session } from '../../engine/store/sessions.ts'
import type { Store } from '../../engine/store/store.ts'
import type { User } from '../../engine/store/users.ts'
import type { Changes } from '../changes.ts'
import { Layout } from '../design/layout.tsx'
import type { FormFields } from '../form.ts'
import { type PageAnswer, type PageOptions, pageAnswer } from './answer.ts'
import type { Cookies } from './cookies.ts'

/** What is read of a request before its handler first waits. */
export interface RequestFacts {
  readonly method: 'GET' | 'HEAD' | 'POST'
  readonly path: string
  readonly query: URLSearchParams
  readonly cookies: Cookies
  readonly address: string
  readonly userAgent: string
  /** The fields of a posted form. */
  readonly fields: FormFields
}

/** What every route can use. */
export interface Site {
  readonly store: Store
  readonly clock: Clock
  readonly registry: RegistryInForce
  readonly changes: Changes
}

/** Who is signed in, and where. */
export interface Identity {
  readonly user: User
  readonly session: Session
  readonly member: Member
  readonly organization: Organization
  /** The organizations that the user belongs to, by name. */
  readonly organizations: readonly Organization[]
}

/** A request by someone who may or may not be signed in. */
export class Guest {
  readonly site: Site
  readonly request: RequestFacts
  readonly identity: Identity | undefined
  /** The time of the request: one for the whole page. */
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
}

/** A request by someone who is signed in. */
export class Visit extends Guest {
  override readonly identity: Identity

  constructor(site: Site, request: RequestFacts, identity: Identity) {
    super(site, request, identity)
    this.identity = identity
  }

  get organization(): Organization {
    return this.identity.organization
  }

  /** Whether this member's role allows an action. Pages show only what the role allows. */
  may(action: Action): boolean {
    return mayDo(this.identity.member.role, action)
  }

  /** The page with the navigation around it. `here` is the path of its entry in the navigation. */
  page(title: string, here: string, content: VNode, options: PageOptions = {}): PageAnswer {
    const { user, member, organization, organizations } = this.identity
    const document = Layout({
      title,
      here,
      theme: this.theme,
      path: this.request.path,
      userName: user.name,
      role: member.role,
      organization,
      organizations,
      may: (action) => this.may(action),
      children: content,
    })
    return pageAnswer(document, options)
  }
}
