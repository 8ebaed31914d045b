/** From this specificity on, a visit is use of AI. Below, the platform is AI-capable. */
export const USE_SPECIFICITY_MIN = 0.6

/**
 * The purpose of a platform, and the category that the API shows. At most 24, because operators
 * read them as rows of a table. Three keep the spelling of the API's specification: llm_chat,
 * code_assistant, image_generation.
 */
export const PLATFORM_TYPES = {
  llm_chat: { category: 'LLM Chat Assistant', about: 'General assistants that people talk to in a browser or app' },
  ai_search: { category: 'AI Search and Research', about: 'Answer engines, and search in scientific papers' },
  ai_companion: { category: 'AI Companion', about: 'Characters, role-play and stories' },
  llm_router: { category: 'LLM Aggregator', about: 'One account or one API in front of models of many vendors' },
  llm_api: { category: 'LLM Provider', about: 'Model vendors and their APIs' },
  cloud_ai: { category: 'Cloud AI Service', about: 'AI services under the names of a general cloud vendor' },
  ml_platform: { category: 'ML Platform', about: 'Model hubs, GPU clouds, training, hosting and research of models' },
  ai_infrastructure: {
    category: 'AI Infrastructure',
    about: 'Parts of AI applications: vector databases, tracing, evaluation, guards, web data',
  },
  local_runtime: {
    category: 'Local AI Runtime',
    about: 'Programs that run models on the own machine: downloads, updates',
  },
  code_assistant: { category: 'Code Assistant', about: 'Writes, completes, explains or reviews source code' },
  app_builder: { category: 'AI App Builder', about: 'Makes and hosts whole applications from a description' },
  agent_platform: { category: 'AI Agent', about: 'Agents that act on their own, and what builds and runs them' },
  mcp_server: {
    category: 'MCP Server',
    about: 'Remote servers through which language models use the data and tools of a vendor, and hubs of such servers',
  },
  ai_browser: { category: 'AI Browser', about: 'Browsers whose assistant reads pages and acts in them' },
  image_generation: { category: 'Image Generation', about: 'Pictures, designs and 3D models made or changed by AI' },
  video_generation: { category: 'Video Generation', about: 'Films, clips and avatars made or changed by AI' },
  audio_ai: { category: 'Speech and Music', about: 'Speech synthesis and recognition, dictation, voice agents, music' },
  writing_assistant: { category: 'Writing Assistant', about: 'Writes, rewrites, translates or checks text' },
  meeting_assistant: {
    category: 'Meeting Assistant',
    about: 'Note takers: record, transcribe and sum up conversations',
  },
  productivity_ai: {
    category: 'AI Productivity',
    about: 'Documents, notes, slides, mail and calendars worked on by AI',
  },
  business_ai: {
    category: 'Business AI',
    about:
      'AI for one function or sector: support, sales, data, law, medicine, finance, staff, school; company-wide search',
  },
  embedded_ai: {
    category: 'Software with AI Features',
    about: 'General software in which AI is one part; low specificity: AI-capable, not AI use',
  },
} as const satisfies Record<string, { category: string; about: string }>

export type PlatformType = keyof typeof PLATFORM_TYPES
