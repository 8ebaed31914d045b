import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

interface Attribute {
  readonly type?: string
  readonly is_array?: boolean
  readonly requirement?: string
  readonly profile?: string | null
  readonly enum?: Readonly<Record<string, { readonly caption: string }>>
  readonly sibling?: string
}

interface Definition {
  readonly name?: string
  readonly extends?: string
  readonly attributes?: Readonly<Record<string, Attribute | readonly string[]>>
  readonly constraints?: Readonly<Record<string, readonly string[]>>
}

interface Type {
  readonly caption: string
  /** The type of observables with values of this type. */
  readonly observable?: number
  readonly type?: string
  readonly regex?: string
  readonly range?: readonly [number, number]
  readonly max_len?: number
}

interface Dictionary {
  readonly attributes: Readonly<Record<string, Attribute>>
  readonly types: { readonly attributes: Readonly<Record<string, Type>> }
}

/** Checks events with a schema of OCSF in its own form. */
export class OcsfSchema {
  readonly version: string
  readonly #dictionary: Dictionary
  readonly #definitions = new Map<string, Definition>()

  /** @param directory of a checkout of ocsf-schema */
  constructor(directory: string) {
    const read = (path: string) => JSON.parse(readFileSync(join(directory, path), 'utf8'))
    this.version = read('version.json').version
    this.#dictionary = read('dictionary.json')
    for (const folder of ['objects', 'events']) {
      for (const file of readdirSync(join(directory, folder), { recursive: true, encoding: 'utf8' })) {
        if (!file.endsWith('.json')) continue
        const definition = read(join(folder, file)) as Definition
        if (definition.name !== undefined) this.#definitions.set(definition.name, definition)
      }
    }
  }

  /** What is wrong with a value of a class or object: one line for each place. */
  faults(name: string, value: unknown, place = name): string[] {
    if (name === 'object' || name === 'json_t') return []
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return [`${place}: is no object`]
    const { attributes, constraints } = this.#resolved(name)
    const given = Object.entries(value).filter(([, each]) => each !== undefined)
    const names = new Set(given.map(([key]) => key))
    const missing = [...attributes]
      .filter(([key, { requirement, profile }]) => requirement === 'required' && !profile && !names.has(key))
      .map(([key]) => `${place}.${key}: is required`)
    const unmet = Object.entries(constraints).flatMap(([kind, keys]) => {
      const count = keys.filter((key) => names.has(key)).length
      return (kind === 'at_least_one' && count === 0) || (kind === 'just_one' && count !== 1)
        ? [`${place}: ${kind} of ${keys.join(', ')}, found ${count}`]
        : []
    })
    const wrong = given.flatMap(([key, each]) => {
      const attribute = attributes.get(key)
      if (attribute === undefined) return [`${place}.${key}: is no attribute of ${name}`]
      return this.#attributeFaults(attribute, each, `${place}.${key}`, value as Record<string, unknown>)
    })
    return [...missing, ...unmet, ...wrong]
  }

  #attributeFaults(attribute: Attribute, value: unknown, place: string, owner: Record<string, unknown>): string[] {
    const { type = '', is_array: isArray = false } = attribute
    if (isArray) {
      if (!Array.isArray(value)) return [`${place}: is no list`]
      return value.flatMap((each, at) => this.#valueFaults(type, each, `${place}[${at}]`))
    }
    const faults = this.#valueFaults(type, value, place)
    if (attribute.enum === undefined) return faults
    const entry = attribute.enum[String(value)]
    if (entry === undefined) return [...faults, `${place}: ${value} is none of ${Object.keys(attribute.enum)}`]
    const caption = attribute.sibling === undefined ? undefined : owner[attribute.sibling]
    if (caption === undefined || caption === entry.caption || entry.caption === 'Other') return faults
    return [...faults, `${place}: ${attribute.sibling} is "${caption}" instead of "${entry.caption}"`]
  }

  #valueFaults(type: string, value: unknown, place: string): string[] {
    const known = this.#dictionary.types.attributes[type]
    if (known === undefined) return this.faults(type, value, place)
    const { type: base = type, regex, range, max_len: lengthMax } = known
    if (base === 'json_t') return []
    const is = { string_t: 'string', boolean_t: 'boolean', integer_t: 'number', long_t: 'number', float_t: 'number' }[
      base
    ]
    if (is !== undefined && typeof value !== is) return [`${place}: is no ${base}`]
    if ((base === 'integer_t' || base === 'long_t') && !Number.isInteger(value)) return [`${place}: is no integer`]
    if (regex !== undefined && !new RegExp(regex).test(String(value))) return [`${place}: does not match ${regex}`]
    if (lengthMax !== undefined && String(value).length > lengthMax) return [`${place}: is too long`]
    if (range !== undefined && !(Number(value) >= range[0] && Number(value) <= range[1])) return [`${place}: range`]
    return []
  }

  /** The attributes with those of the definitions that it extends, and of the dictionary. */
  #resolved(name: string): { attributes: Map<string, Attribute>; constraints: Record<string, readonly string[]> } {
    const definition = this.#definitions.get(name)
    if (definition === undefined) throw new Error(`the schema has no ${name}`)
    const base =
      definition.extends === undefined
        ? { attributes: new Map<string, Attribute>(), constraints: {} }
        : this.#resolved(definition.extends)
    const attributes = new Map(base.attributes)
    for (const [key, own] of Object.entries(definition.attributes ?? {})) {
      if (key === '$include' || Array.isArray(own)) continue
      const before = attributes.get(key) ?? this.#dictionary.attributes[key] ?? {}
      const given = own as Attribute
      const merged = { ...before, ...given }
      attributes.set(key, given.enum ? { ...merged, enum: { ...before.enum, ...given.enum } } : merged)
    }
    if (name === 'observable') {
      const types = Object.values(this.#dictionary.types.attributes).filter(
        ({ observable }) => observable !== undefined,
      )
      const captions = Object.fromEntries(types.map(({ observable, caption }) => [observable, { caption }]))
      const typeId = attributes.get('type_id')
      attributes.set('type_id', { ...typeId, enum: { ...typeId?.enum, ...captions } })
    }
    // Classes have the enumeration of their own identifiers only implicitly.
    for (const key of ['class_uid', 'category_uid', 'type_uid']) {
      const { enum: _, ...rest } = attributes.get(key) ?? {}
      if (attributes.has(key)) attributes.set(key, rest)
    }
    return { attributes, constraints: definition.constraints ?? base.constraints }
  }
}
