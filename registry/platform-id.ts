import { z } from 'zod'

/** The ID of a platform, also the key by which operators override or disable it. */
export const platformId = z
  .string()
  .max(64)
  .regex(/^[a-z0-9]+(?:-[a-z0-9]+)*$/, 'must be lower-case words joined by single hyphens')
