import type { ComponentChildren } from 'preact'
import type { FormState } from '../form.ts'

interface FieldProps {
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
  /** Values that the browser proposes. */
  readonly suggestions?: readonly string[]
  /** Filled by the browser script from the fragment of the address. */
  readonly fromFragment?: boolean
}

interface FieldFrameProps {
  readonly name: string
  readonly label: string
  readonly hint?: ComponentChildren
  readonly error?: string | undefined
  readonly children: ComponentChildren
}

/** The label, hint and error around the input `name`, which `describedBy` connects with them. */
export function FieldFrame({ name, label, hint, error, children }: FieldFrameProps) {
  return (
    <div class="field">
      <label for={name}>{label}</label>
      {children}
      {hint !== undefined && (
        <p id={`${name}-hint`} class="hint">
          {hint}
        </p>
      )}
      <FieldError id={`${name}-error`} error={error} />
    </div>
  )
}

/** The attributes of an input in a FieldFrame, for assistive technology. */
function describedBy({ name, hint, error }: Pick<FieldFrameProps, 'name' | 'hint' | 'error'>) {
  const ids = [hint === undefined ? '' : `${name}-hint`, error === undefined ? '' : `${name}-error`]
  const described = ids.join(' ').trim() || undefined
  return { 'aria-invalid': error === undefined ? undefined : ('true' as const), 'aria-describedby': described }
}

/** A one-line field with its label, hint and error. The server never sends a password back. */
export function Field(props: FieldProps) {
  const { name, label, form, type = 'text', hint, value = '', required, maxLength, minLength } = props
  const { autoComplete = 'off', fromFragment, min, suggestions } = props
  const error = form.errors[name]
  return (
    <FieldFrame name={name} label={label} hint={hint} error={error}>
      <input
        id={name}
        name={name}
        // Preact's types expect a literal type.
        type={type as 'text'}
        value={type === 'password' ? '' : form.values.text(name, value)}
        required={required}
        maxLength={maxLength}
        minLength={minLength}
        min={min}
        autoComplete={autoComplete}
        list={suggestions && `${name}-list`}
        {...describedBy({ name, hint, error })}
        data-from-fragment={fromFragment ? '' : undefined}
      />
      {suggestions !== undefined && (
        <datalist id={`${name}-list`}>
          {suggestions.map((each) => (
            <option key={each} value={each} />
          ))}
        </datalist>
      )}
    </FieldFrame>
  )
}

interface TextAreaProps {
  readonly name: string
  readonly label: string
  readonly form: FormState
  readonly rows: number
  readonly hint?: ComponentChildren
  /** The initial value. A submitted value replaces it. */
  readonly value?: string
  readonly required?: boolean
  readonly mono?: boolean
}

/** A field of several lines. */
export function TextArea({ name, label, form, rows, hint, value = '', required, mono }: TextAreaProps) {
  const error = form.errors[name]
  return (
    <FieldFrame name={name} label={label} hint={hint} error={error}>
      <textarea
        id={name}
        name={name}
        class={mono ? 'mono' : undefined}
        rows={rows}
        required={required}
        spellcheck={false}
        {...describedBy({ name, hint, error })}
        // A browser drops the first line break of the content.
        value={form.values.text(name, value).replace(/^(?=\r?\n)/, '\n')}
      />
    </FieldFrame>
  )
}

interface FileContentProps {
  readonly form: FormState
  /** Endings of the files, such as `.csv,.txt`. */
  readonly accept: string
  readonly hint: string
}

/** The field `text` for the content of a file, which the browser script fills from a file. */
export function FileContent({ form, accept, hint }: FileContentProps) {
  return (
    <>
      <div class="field" data-reads-file="text" hidden>
        <label for="file">Choose a file</label>
        <input id="file" type="file" accept={accept} />
      </div>
      <TextArea name="text" label="Content" form={form} rows={8} required mono hint={hint} />
    </>
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

interface ChoiceProps {
  readonly name: string
  readonly label: string
  readonly form: FormState
  readonly options: readonly (readonly [value: string, name: string])[]
  readonly value?: string
}

/** A choice of one value. */
export function Select({ name, label, form, options, value = '' }: ChoiceProps) {
  const chosen = form.values.text(name, value)
  return (
    <FieldFrame name={name} label={label} error={form.errors[name]}>
      <Options name={name} options={options} chosen={chosen} />
    </FieldFrame>
  )
}

interface OptionsProps {
  readonly name: string
  readonly options: ChoiceProps['options']
  readonly chosen: string
}

/** The list of a choice, without its label. */
export function Options({ name, options, chosen }: OptionsProps) {
  return (
    <select id={name} name={name}>
      {options.map(([each, text]) => (
        <option key={each} value={each} selected={each === chosen}>
          {text}
        </option>
      ))}
    </select>
  )
}

/** A choice of any number of values. */
export function Checks({ name, label, form, options }: Omit<ChoiceProps, 'value'>) {
  const chosen = form.values.all(name)
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

interface SubmitProps {
  /** `plain`: the button is not the most important one of the page. */
  readonly look?: 'first' | 'danger' | 'plain' | undefined
  /** The address of the page to return to. */
  readonly cancel?: string | undefined
  readonly children: ComponentChildren
}

/** The button that sends a form, and the link that leaves it. */
export function Submit({ look = 'first', cancel, children }: SubmitProps) {
  return (
    <div class="row">
      <button class={look === 'plain' ? undefined : look} type="submit">
        {children}
      </button>
      {cancel !== undefined && (
        <a class="button" href={cancel}>
          Cancel
        </a>
      )}
    </div>
  )
}

interface FormProps {
  /** The form is posted to this path. */
  readonly action: string
  /** undefined: the page shows the errors of the form as a whole elsewhere. */
  readonly form?: FormState | undefined
  /** The words on the button. */
  readonly submit: ComponentChildren
  readonly cancel?: string
  readonly look?: SubmitProps['look']
  readonly children?: ComponentChildren
}

/** A form with its errors, its fields and its button. */
export function Form({ action, form, submit, cancel, look, children }: FormProps) {
  return (
    <form class="stack" method="post" action={action}>
      {form !== undefined && <FormError form={form} />}
      {children}
      <Submit look={look} cancel={cancel}>
        {submit}
      </Submit>
    </form>
  )
}

interface ActionButtonProps {
  /** The form is posted to this path. */
  readonly action: string
  /** For screen readers, if the words on the button do not say what it changes. */
  readonly label?: string
  readonly look?: 'first' | 'danger' | 'quiet'
  readonly fields?: Fields
  readonly children: ComponentChildren
}

/** A form of one button. */
export function ActionButton({ action, label, look, fields, children }: ActionButtonProps) {
  return (
    <form method="post" action={action}>
      <Hidden fields={fields} />
      <button class={look} type="submit" aria-label={label}>
        {children}
      </button>
    </form>
  )
}

export type Fields = readonly (readonly [name: string, value: string])[]

/** Hidden fields of a form. */
export function Hidden({ fields = [] }: { readonly fields?: Fields | undefined }) {
  return (
    <>
      {fields.map(([name, value], at) => (
        <input key={at} type="hidden" name={name} value={value} />
      ))}
    </>
  )
}

interface TwoStepProps {
  /** The form is posted to this path. */
  readonly action: string
  readonly verb: 'Revoke' | 'Remove' | 'Delete'
  /** What is revoked or removed, for screen readers. */
  readonly label: string
  /** The words after `label` in the second step: `permanently`. */
  readonly effect?: string
  readonly fields?: Fields
}

/** A button that reveals a second button, because the change is permanent. */
export function TwoStep({ action, verb, label, effect = 'permanently', fields }: TwoStepProps) {
  return (
    <details class="confirm">
      <summary aria-label={`${verb} ${label}`}>{verb}</summary>
      <form method="post" action={action}>
        <Hidden fields={fields} />
        <button class="danger" type="submit" aria-label={`Confirm: ${verb.toLowerCase()} ${label} ${effect}`}>
          Confirm
        </button>
      </form>
    </details>
  )
}

interface PasskeyFormProps {
  readonly action: string
  /** Makes a passkey, or signs with one. */
  readonly ceremony: 'create' | 'get'
  /** The name of the field that receives the response of the authenticator. */
  readonly field: string
  /** The options of the ceremony, or the address that has them. */
  readonly options: object | string
  /** Other fields. */
  readonly kept?: Fields
  readonly class?: string
  /** The form is of no use without the browser script, which then shows it. */
  readonly hidden?: boolean
  readonly children: ComponentChildren
}

/** A form that the browser script completes with the response of an authenticator. */
export function PasskeyForm(props: PasskeyFormProps) {
  const { action, ceremony, field, options, kept, hidden, children } = props
  const isAddress = typeof options === 'string'
  return (
    <form
      class={props.class ?? 'stack'}
      method="post"
      action={action}
      hidden={hidden}
      data-passkey={ceremony}
      data-options={isAddress ? undefined : JSON.stringify(options)}
      data-options-from={isAddress ? options : undefined}
    >
      <Hidden fields={kept} />
      <input type="hidden" name={field} data-passkey-response="" />
      {children}
      <p class="error" role="alert" data-passkey-error="" hidden />
    </form>
  )
}
