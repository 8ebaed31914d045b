import { Field } from '../design/form.tsx'
import type { FormState } from '../form.ts'
import { PASSWORD_LENGTH_MIN } from '../sign-in/passwords.ts'

/** The fields of a new password: `password` and `repeated`. */
export function NewPassword({ label, form }: { readonly label: string; readonly form: FormState }) {
  return (
    <>
      <Field
        name="password"
        label={label}
        type="password"
        form={form}
        required
        minLength={PASSWORD_LENGTH_MIN}
        autoComplete="new-password"
        hint={`At least ${PASSWORD_LENGTH_MIN} characters.`}
      />
      <Field
        name="repeated"
        label={`Repeat the ${label[0]?.toLowerCase()}${label.slice(1)}`}
        type="password"
        form={form}
        required
        autoComplete="new-password"
      />
    </>
  )
}
