import type { z } from 'zod'

/** Bytes of a posted form, and its fields. Larger ones are refused. */
export const FORM_BYTES_MAX = 64 * 1024
export const FORM_FIELDS_MAX = 500

/** Names and values of a form, in their order. */
export class FormFields {
  readonly #pairs: readonly (readonly [string, string])[]

  constructor(pairs: readonly (readonly [string, string])[] = []) {
    this.#pairs = pairs
  }

  /** The first value; '' if the form has no such field. */
  text(name: string): string {
    return this.#pairs.find(([each]) => each === name)?.[1] ?? ''
  }

  /** All values, as check boxes of one name have them. */
  all(name: string): string[] {
    return this.#pairs.filter(([each]) => each === name).map(([, value]) => value)
  }

  /** All fields except these. */
  without(...names: readonly string[]): readonly (readonly [string, string])[] {
    return this.#pairs.filter(([name]) => !names.includes(name))
  }

  /** For a schema: a field of one value as its text, a field of several values as a list. */
  toObject(lists: readonly string[] = []): Record<string, string | string[]> {
    const object: Record<string, string | string[]> = Object.create(null)
    for (const [name, value] of this.#pairs) {
      if (lists.includes(name)) object[name] = [...((object[name] as string[] | undefined) ?? []), value]
      else object[name] ??= value
    }
    for (const name of lists) object[name] ??= []
    return object
  }
}

/**
 * Reads application/x-www-form-urlencoded. Answers in words what is wrong with a body that is no
 * such form.
 */
export function readFields(body: Uint8Array): FormFields | string {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return 'The form is not valid UTF-8'
  }
  if (text === '') return new FormFields()
  const parts = text.split('&', FORM_FIELDS_MAX + 1)
  if (parts.length > FORM_FIELDS_MAX) return `The form has more than ${FORM_FIELDS_MAX} fields`
  const pairs: [string, string][] = []
  for (const part of parts) {
    const at = part.indexOf('=')
    try {
      const [name, value] = at < 0 ? [part, ''] : [part.slice(0, at), part.slice(at + 1)]
      pairs.push([decoded(name), decoded(value)])
    } catch {
      return 'The form is not valid percent-encoded UTF-8'
    }
  }
  return new FormFields(pairs)
}

function decoded(text: string): string {
  return decodeURIComponent(text.replaceAll('+', ' '))
}

/** What was typed into a form, and what is wrong with it, so that the page can show both again. */
export interface FormState {
  readonly values: FormFields
  /** By name of the field; '' for the form as a whole. */
  readonly errors: Readonly<Record<string, string>>
}

export const EMPTY_FORM: FormState = { values: new FormFields(), errors: {} }

/** Checks a form. `lists` are the fields that may have several values. */
export function readForm<S extends z.ZodType>(
  schema: S,
  fields: FormFields,
  lists: readonly string[] = [],
): { readonly data: z.output<S> } | { readonly state: FormState } {
  const parsed = schema.safeParse(fields.toObject(lists))
  if (parsed.success) return { data: parsed.data }
  const errors: Record<string, string> = {}
  for (const { path, message } of parsed.error.issues) errors[String(path[0] ?? '')] ??= message
  return { state: { values: fields, errors } }
}
