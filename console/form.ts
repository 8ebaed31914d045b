import type { z } from 'zod'
import { Fault, type FaultCode } from '../engine/kernel/process/error-codes.ts'

/** Maximum bytes of a posted form. Larger forms are rejected. */
export const FORM_BYTES_MAX = 64 * 1024
export const FORM_FIELDS_MAX = 500

/** Names and values of a form, in order. */
export class FormFields {
  readonly #pairs: readonly (readonly [string, string])[]

  constructor(pairs: readonly (readonly [string, string])[] = []) {
    this.#pairs = pairs
  }

  /** The first value; `absent` if the form has no such field. */
  text(name: string, absent = ''): string {
    return this.#pairs.find(([each]) => each === name)?.[1] ?? absent
  }

  /** All values of a field, such as those of check boxes with the same name. */
  all(name: string): string[] {
    return this.#pairs.filter(([each]) => each === name).map(([, value]) => value)
  }

  /** All fields except those with these names. */
  without(...names: readonly string[]): readonly (readonly [string, string])[] {
    return this.#pairs.filter(([name]) => !names.includes(name))
  }

  /**
   * The input of a schema: the text of a single-value field, or the list of values of a field in
   * `lists`.
   */
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

/** Parses application/x-www-form-urlencoded. Returns an error message if the body is invalid. */
export function readFields(body: Uint8Array, fieldsMax = FORM_FIELDS_MAX): FormFields | string {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(body)
  } catch {
    return 'The form is not valid UTF-8'
  }
  if (text === '') return new FormFields()
  const parts = text.split('&', fieldsMax + 1)
  if (parts.length > fieldsMax) return `The form has more than ${fieldsMax} fields`
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

/** Bytes of a form with a file of so many bytes in a text field: one byte takes up to three. */
export function formBytesMax(fileBytesMax: number): number {
  return 3 * fileBytesMax + 1024
}

/** The content of a file, in the field `text`. @throws RejectedForm */
export function fileText(fields: FormFields, bytesMax: number): string {
  const text = fields.text('text')
  if (text.trim() === '') throw new RejectedForm({ text: 'Choose a file, or paste its content' })
  if (Buffer.byteLength(text) <= bytesMax) return text
  throw new RejectedForm({ text: `At most ${bytesMax / 1024} KiB. posture-admin reads larger files` })
}

/** The submitted values of a form and their errors, so that the page can show both again. */
export interface FormState {
  readonly values: FormFields
  /** Errors by field name. '' is the form as a whole. */
  readonly errors: Readonly<Record<string, string>>
  /** Of the answer with the form, which may have additional header fields. */
  readonly status: number
  readonly fields?: readonly string[]
}

export const EMPTY_FORM: FormState = { values: new FormFields(), errors: {}, status: 200 }

/** The form was not accepted. Visit.submit() shows it again with these errors. */
export class RejectedForm extends Error {
  override readonly name = 'RejectedForm'
  readonly errors: FormState['errors']
  readonly status: number
  readonly fields: readonly string[]

  constructor(errors: FormState['errors'], status = 400, fields: readonly string[] = []) {
    super(Object.values(errors).join(', '))
    this.errors = errors
    this.status = status
    this.fields = fields
  }
}

/** Validates a form. `lists` are the fields that may have several values. @throws RejectedForm */
export function readForm<S extends z.ZodType>(
  schema: S,
  fields: FormFields,
  lists: readonly string[] = [],
): z.output<S> {
  return validated(schema, fields.toObject(lists))
}

/** @throws RejectedForm */
export function validated<S extends z.ZodType>(schema: S, given: unknown): z.output<S> {
  const parsed = schema.safeParse(given)
  if (parsed.success) return parsed.data
  const errors: Record<string, string> = {}
  for (const { path, message } of parsed.error.issues) errors[String(path[0] ?? '')] ??= message
  throw new RejectedForm(errors)
}

/** Status by fault, for faults that values of a form or missing keys of the service cause. */
const STATUS: Readonly<Partial<Record<FaultCode, number>>> = {
  USAGE: 400,
  CONFLICT: 409,
  REGISTRY_FILE: 409,
  SECRETS_KEY: 503,
}

/** The form with the error of its handler. @throws any error that is not of the form */
export function rejectedForm(error: unknown, values: FormFields): FormState {
  if (error instanceof RejectedForm) {
    const { errors, status, fields } = error
    return { values, errors, status, fields }
  }
  const status = error instanceof Fault ? STATUS[error.code] : undefined
  if (!(error instanceof Fault) || status === undefined) throw error
  return { values, errors: { '': error.message }, status }
}
