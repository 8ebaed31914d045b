import type { ComponentChildren } from 'preact'
import type { FormState } from '../form.ts'

export interface FieldProps {
  readonly name: string
  readonly label: string
  readonly form: FormState
  readonly type?: 'text' | 'password' | 'email' | 'number' | 'search' | 'date'
  /** The expected input, shown below the field. */
  readonly hint?: ComponentChildren
  /** The initial value. A submitted value replaces it. */
  readonly value?: string
  readonly required?: boolean
  readonly maxLength?: number
  readonly minLength?: number
  /** The first valid day of a date. */
  readonly min?: string
  readonly autoComplete?: string
  /** Filled by the browser script from the fragment of the address. */
  readonly fromFragment?: boolean
}

/** A one-line field with its label, hint and error. The server never sends a password back. */
export function Field(props: FieldProps) {
  const { name, label, form, type = 'text', hint, value = '', required, maxLength, minLength } = props
  const { autoComplete = 'off', fromFragment, min } = props
  const error = form.errors[name]
  const described = [hint === undefined ? '' : `${name}-hint`, error === undefined ? '' : `${name}-error`]
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <input
        id={name}
        name={name}
        // Preact's types expect a literal type.
        type={type as 'text'}
        value={type === 'password' ? '' : form.values.text(name) || value}
        required={required}
        maxLength={maxLength}
        minLength={minLength}
        min={min}
        autoComplete={autoComplete}
        aria-invalid={error === undefined ? undefined : 'true'}
        aria-describedby={described.join(' ').trim() || undefined}
        data-from-fragment={fromFragment ? '' : undefined}
      />
      {hint !== undefined && (
        <p id={`${name}-hint`} class="hint">
          {hint}
        </p>
      )}
      <FieldError id={`${name}-error`} error={error} />
    </div>
  )
}

export interface TextAreaProps {
  readonly name: string
  readonly label: string
  readonly form: FormState
  readonly rows: number
  readonly hint?: ComponentChildren
  readonly required?: boolean
  readonly mono?: boolean
}

/** A field of several lines. */
export function TextArea({ name, label, form, rows, hint, required, mono }: TextAreaProps) {
  const error = form.errors[name]
  const described = [hint === undefined ? '' : `${name}-hint`, error === undefined ? '' : `${name}-error`]
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <textarea
        id={name}
        name={name}
        class={mono ? 'mono' : undefined}
        rows={rows}
        required={required}
        spellcheck={false}
        aria-invalid={error === undefined ? undefined : 'true'}
        aria-describedby={described.join(' ').trim() || undefined}
        // A browser drops the first line break of the content.
        value={form.values.text(name).replace(/^(?=\r?\n)/, '\n')}
      />
      {hint !== undefined && (
        <p id={`${name}-hint`} class="hint">
          {hint}
        </p>
      )}
      <FieldError id={`${name}-error`} error={error} />
    </div>
  )
}

/** The error of a field. */
export function FieldError({ id, error }: { readonly id: string; readonly error: string | undefined }) {
  return error === undefined ? null : (
    <p id={id} class="error" role="alert">
      {error}
    </p>
  )
}

/** Errors of the form as a whole. */
export function FormError({ form }: { readonly form: FormState }) {
  return <FieldError id="form-error" error={form.errors['']} />
}

export interface ChoiceProps {
  readonly name: string
  readonly label: string
  readonly form: FormState
  readonly options: readonly (readonly [value: string, name: string])[]
  readonly value?: string
}

/** A choice of one value. */
export function Select({ name, label, form, options, value = '' }: ChoiceProps) {
  const chosen = form.values.text(name) || value
  return (
    <div class="field">
      <label for={name}>{label}</label>
      <select id={name} name={name}>
        {options.map(([each, text]) => (
          <option key={each} value={each} selected={each === chosen}>
            {text}
          </option>
        ))}
      </select>
      <FieldError id={`${name}-error`} error={form.errors[name]} />
    </div>
  )
}

/** A choice of any number of values. */
export function Checks({
  name,
  label,
  form,
  options,
  values = [],
}: Omit<ChoiceProps, 'value'> & { readonly values?: readonly string[] }) {
  const typed = form.values.all(name)
  const chosen = typed.length > 0 ? typed : values
  return (
    <fieldset>
      <legend>{label}</legend>
      {options.map(([each, text]) => (
        <label key={each} class="check">
          <input type="checkbox" name={name} value={each} checked={chosen.includes(each)} />
          {text}
        </label>
      ))}
      <FieldError id={`${name}-error`} error={form.errors[name]} />
    </fieldset>
  )
}
