import { z } from 'zod'
import { builtInEntry, changedEntry } from './registry-file.ts'
import { platformId } from './schema-parts.ts'

/*
 * JSON Schemas of registry files, for editors. `npm run docs` writes them to registry/schema/. They
 * lack what JSON Schema cannot express: names of hosts, and specificities by purpose. posture-admin
 * registry validate checks everything.
 */

const ABOUT = {
  id: 'Lower-case words joined by single hyphens. The id of a built-in platform changes that platform.',
  risk: 'A whole number from 0 to 100, and one line with the reason.',
  source: 'Where the information comes from, one line each.',
  domains: 'The hosts of the platform. They replace all hosts of a platform that is changed.',
} as const

/** The schema of an operator's file: `platforms` to add or change, and `disable`. */
export function registryFileSchema(): object {
  const file = z.strictObject({
    platforms: z.array(changedEntry).optional().describe('Platforms to add or change.'),
    disable: z.array(platformId).optional().describe('Ids of built-in platforms to leave out.'),
  })
  return schemaOf(file, 'Registry file of Security Posture Service')
}

/** The schema of registry/platforms/*.yaml: a list of complete platforms. */
export function platformListSchema(): object {
  return schemaOf(z.array(builtInEntry), 'Platforms of the built-in registry')
}

function schemaOf(schema: z.ZodType, title: string): object {
  return {
    ...z.toJSONSchema(schema, {
      io: 'input',
      override: ({ jsonSchema }) => {
        for (const [name, about] of Object.entries(ABOUT)) {
          const property = jsonSchema.properties?.[name]
          if (typeof property === 'object') property.description = about
        }
      },
    }),
    title,
  }
}
