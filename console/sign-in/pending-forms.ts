import { randomBytes } from 'node:crypto'
import { FLOW_MS } from './oidc-flow.ts'

/** Forms whose users are at a provider. Beyond it the oldest is dropped. */
const FORMS_MAX = 200
/** Of these, of one session. */
const FORMS_PER_SESSION_MAX = 5
/** Characters of names and values of all waiting forms. Beyond it the oldest are dropped. */
const CHARS_MAX = 4 * 1024 * 1024

/** A form that its user sent, and that needs a confirmation first. */
interface PendingForm {
  readonly id: string
  readonly sessionId: string
  readonly action: string
  readonly fields: readonly (readonly [string, string])[]
  readonly untilMs: number
}

/**
 * Keeps what users typed while they are at their identity provider. In memory: a restart of the
 * service loses it.
 */
export class PendingForms {
  readonly #forms = new Map<string, PendingForm>()

  /** Returns the id of the form. */
  keep(given: Pick<PendingForm, 'sessionId' | 'action' | 'fields'>, nowMs: number): string {
    const id = randomBytes(16).toString('hex')
    this.#forms.set(id, { id, ...given, untilMs: nowMs + FLOW_MS })
    const own = [...this.#forms.values()].filter(({ sessionId }) => sessionId === given.sessionId)
    for (const form of own.slice(0, -FORMS_PER_SESSION_MAX)) this.#forms.delete(form.id)
    for (const form of this.#forms.values()) if (nowMs >= form.untilMs || this.#isFull()) this.#forms.delete(form.id)
    return id
  }

  find(id: string, sessionId: string, nowMs: number): PendingForm | undefined {
    const form = this.#forms.get(id)
    return form !== undefined && form.sessionId === sessionId && nowMs < form.untilMs ? form : undefined
  }

  #isFull(): boolean {
    if (this.#forms.size > FORMS_MAX) return true
    let chars = 0
    for (const { fields } of this.#forms.values()) {
      for (const [name, value] of fields) chars += name.length + value.length
    }
    return chars > CHARS_MAX
  }
}
