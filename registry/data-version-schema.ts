import { z } from 'zod'
import { dayOfVersion } from './data-version.ts'

const FORM = /^\d{4}\.\d{2}\.\d{2}(?:\.(?:[2-9]|[1-9]\d{1,2}))?$/

/** The version of the registry's data, see data-version.ts. */
export const dataVersion = z
  .string()
  .regex(FORM, 'must be a version such as 2026.11.23')
  .refine((text) => z.iso.date().safeParse(dayOfVersion(text)).success, 'must begin with a day')
