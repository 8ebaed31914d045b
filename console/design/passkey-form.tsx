import type { ComponentChildren } from 'preact'

export interface PasskeyFormProps {
  readonly action: string
  /** Makes a passkey, or signs with one. */
  readonly ceremony: 'create' | 'get'
  /** The name of the field that receives the response of the authenticator. */
  readonly field: string
  /** The options of the ceremony, or the address that has them. */
  readonly options: object | string
  /** Other fields. */
  readonly kept: readonly (readonly [string, string])[]
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
      {kept.map(([name, value], at) => (
        <input key={at} type="hidden" name={name} value={value} />
      ))}
      <input type="hidden" name={field} data-passkey-response="" />
      {children}
      <p class="error" role="alert" data-passkey-error="" hidden />
    </form>
  )
}
