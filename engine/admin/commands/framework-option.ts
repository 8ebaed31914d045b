import { InvalidArgumentError, Option } from 'commander'
import { type AnyFrameworkId, asFrameworkId, FRAMEWORK_IDS } from '../../store/framework.ts'

/** An option that names a built-in framework or one of the organization. */
export function frameworkOption(flags: string, description: string): Option {
  return new Option(flags, `${description}: ${FRAMEWORK_IDS.join(', ')}, or the id of an own framework`).argParser(
    (text: string): AnyFrameworkId => {
      const known = asFrameworkId(text)
      if (known !== undefined) return known
      throw new InvalidArgumentError(`Expected one of ${FRAMEWORK_IDS.join(', ')}, or own- and the rest of an id.`)
    },
  )
}
