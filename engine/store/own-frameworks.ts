import type { Environment } from '../kernel/lmdb/environment.ts'
import { Family } from './family.ts'
import type { OwnFrameworkId, Template, TemplateCategory } from './framework.ts'
import { textKey, uuidBytes } from './keys.ts'

/** A framework that an organization added, without its items. */
export interface OwnFramework {
  readonly id: OwnFrameworkId
  readonly organizationId: string
  readonly name: string
  /** Of its items, as in a built-in template. Changes when a file replaces them. */
  readonly version: string
  readonly categories: number
  readonly items: number
  /** When the file of this version was added. */
  readonly addedAtMs: number
}

/**
 * The frameworks of each organization, each in two records: the framework, and its categories with
 * items, so that lists do not read megabytes.
 */
export class OwnFrameworks {
  readonly #frameworks: Family<OwnFramework>
  readonly #categories: Family<readonly TemplateCategory[]>

  constructor(environment: Environment) {
    this.#frameworks = new Family(environment.table('own-frameworks'), 'own framework')
    this.#categories = new Family(environment.table('own-framework-items'), 'items of an own framework')
  }

  get(organizationId: string, id: string): OwnFramework | undefined {
    return this.#frameworks.get(textKey(organizationId, id))
  }

  /** Ordered by id. */
  ofOrganization(organizationId: string): OwnFramework[] {
    return Array.from(this.#frameworks.range(uuidBytes(organizationId)), ({ value }) => value)
  }

  template(organizationId: string, id: string): Template | undefined {
    const framework = this.get(organizationId, id)
    const categories = framework && this.#categories.get(textKey(organizationId, id))
    return framework && categories && { version: framework.version, categories }
  }

  put(framework: OwnFramework, categories: readonly TemplateCategory[]): void {
    const key = textKey(framework.organizationId, framework.id)
    this.#frameworks.put(key, framework)
    this.#categories.put(key, categories)
  }

  remove({ organizationId, id }: OwnFramework): void {
    const key = textKey(organizationId, id)
    this.#frameworks.remove(key)
    this.#categories.remove(key)
  }
}
