"""Tree-sitter queries that `construct.code.parse` runs, one set a language.

Captures: `c` a comment, `doc` a bare string statement, `raw` text the grammar leaves unparsed; `n` a
name, `m` a name after a dot (or of a keyword argument), `k` a name that is also a key; `any` the
declaration of something that may be reached through a dot too (functions, types, fields), `local` the
declaration of a variable, a parameter or a label.
"""

from typing import NamedTuple


class Grammar(NamedTuple):
    """Module and function of a language's parser, and queries for its comments, names and declarations."""

    module: str
    function: str
    comments: str
    names: str
    declarations: str


_C_COMMENTS = "(comment) @c (preproc_arg) @raw"
_C_NAMES = """
(identifier) @n (type_identifier) @n (statement_identifier) @n (field_identifier) @m (preproc_arg) @raw
"""
_C_DECLARATIONS = """
(function_declarator declarator: (identifier) @any)
(function_declarator declarator: (field_identifier) @any)
(field_declaration declarator: (field_identifier) @any)
(field_declaration declarator: (_ declarator: (field_identifier) @any))
(struct_specifier name: (type_identifier) @any body: (_))
(union_specifier name: (type_identifier) @any body: (_))
(enum_specifier name: (type_identifier) @any body: (_))
(type_definition declarator: (type_identifier) @any)
(preproc_def name: (identifier) @any)
(preproc_function_def name: (identifier) @any)
(enumerator name: (identifier) @any)
(init_declarator declarator: (identifier) @local)
(declaration declarator: (identifier) @local)
(pointer_declarator declarator: (identifier) @local)
(array_declarator declarator: (identifier) @local)
(parameter_declaration declarator: (identifier) @local)
(labeled_statement label: (statement_identifier) @local)
"""

GRAMMARS = {
    "c": Grammar("tree_sitter_c", "language", _C_COMMENTS, _C_NAMES, _C_DECLARATIONS),
    "cpp": Grammar(
        "tree_sitter_cpp",
        "language",
        _C_COMMENTS,
        _C_NAMES + "(namespace_identifier) @n",
        _C_DECLARATIONS
        + """
(reference_declarator (identifier) @local)
(function_declarator declarator: (qualified_identifier name: (identifier) @any))
(class_specifier name: (type_identifier) @any body: (_))
(namespace_definition name: (namespace_identifier) @any)
(for_range_loop declarator: (identifier) @local)
(parameter_declaration declarator: (reference_declarator (identifier) @local))
""",
    ),
    "python": Grammar(
        "tree_sitter_python",
        "language",
        "(comment) @c (expression_statement . (string) @doc .)",
        """
(identifier) @n
(attribute attribute: (identifier) @m)
(keyword_argument name: (identifier) @m)
""",
        """
(function_definition name: (identifier) @any)
(class_definition name: (identifier) @any)
(assignment left: (identifier) @local)
(assignment left: (_ (identifier) @local))
(parameters (identifier) @local)
(lambda_parameters (identifier) @local)
(default_parameter name: (identifier) @local)
(typed_parameter (identifier) @local)
(typed_default_parameter name: (identifier) @local)
(for_statement left: (identifier) @local)
(for_in_clause left: (identifier) @local)
(as_pattern_target (identifier) @local)
(aliased_import alias: (identifier) @local)
""",
    ),
    "javascript": Grammar(
        "tree_sitter_javascript",
        "language",
        "(comment) @c (html_comment) @c",
        """
(identifier) @n (statement_identifier) @n (property_identifier) @m
(shorthand_property_identifier) @k (shorthand_property_identifier_pattern) @k
""",
        """
(function_declaration name: (identifier) @any)
(class_declaration name: (identifier) @any)
(method_definition name: (property_identifier) @any)
(variable_declarator name: (identifier) @local)
(formal_parameters (identifier) @local)
(arrow_function parameter: (identifier) @local)
(catch_clause parameter: (identifier) @local)
""",
    ),
    "go": Grammar(
        "tree_sitter_go",
        "language",
        "(comment) @c",
        "(identifier) @n (type_identifier) @n (field_identifier) @m",
        """
(function_declaration name: (identifier) @any)
(method_declaration name: (field_identifier) @any)
(type_spec name: (type_identifier) @any)
(field_declaration name: (field_identifier) @any)
(short_var_declaration left: (expression_list (identifier) @local))
(range_clause left: (expression_list (identifier) @local))
(var_spec name: (identifier) @local)
(const_spec name: (identifier) @local)
(parameter_declaration name: (identifier) @local)
""",
    ),
    "java": Grammar(
        "tree_sitter_java",
        "language",
        "(line_comment) @c (block_comment) @c",
        """
(identifier) @n (type_identifier) @n
(field_access field: (identifier) @m)
(method_invocation object: (_) name: (identifier) @m)
""",
        """
(method_declaration name: (identifier) @any)
(class_declaration name: (identifier) @any)
(constructor_declaration name: (identifier) @any)
(field_declaration declarator: (variable_declarator name: (identifier) @any))
(local_variable_declaration declarator: (variable_declarator name: (identifier) @local))
(formal_parameter name: (identifier) @local)
""",
    ),
    "ruby": Grammar(
        "tree_sitter_ruby",
        "language",
        "(comment) @c",
        "(identifier) @n (constant) @n (call receiver: (_) method: (identifier) @m)",
        """
(method name: (identifier) @any)
(singleton_method name: (identifier) @any)
(class name: (constant) @any)
(module name: (constant) @any)
(assignment left: (identifier) @local)
(left_assignment_list (identifier) @local)
(method_parameters (identifier) @local)
(optional_parameter name: (identifier) @local)
(block_parameters (identifier) @local)
(exception_variable (identifier) @local)
""",
    ),
    "rust": Grammar(
        "tree_sitter_rust",
        "language",
        "(line_comment) @c (block_comment) @c",
        """
(identifier) @n (type_identifier) @n (field_identifier) @m (shorthand_field_identifier) @k
""",
        """
(function_item name: (identifier) @any)
(struct_item name: (type_identifier) @any)
(enum_item name: (type_identifier) @any)
(const_item name: (identifier) @any)
(static_item name: (identifier) @any)
(let_declaration pattern: (identifier) @local)
(parameter pattern: (identifier) @local)
""",
    ),
    "php": Grammar(
        "tree_sitter_php",
        "language_php",
        "(comment) @c",
        """
(name) @n
(member_access_expression name: (name) @m)
(member_call_expression name: (name) @m)
""",
        """
(function_definition name: (name) @any)
(method_declaration name: (name) @any)
(class_declaration name: (name) @any)
(assignment_expression left: (variable_name (name) @local))
(simple_parameter name: (variable_name (name) @local))
""",
    ),
    "csharp": Grammar(
        "tree_sitter_c_sharp",
        "language",
        "(comment) @c",
        "(identifier) @n (member_access_expression name: (identifier) @m)",
        """
(method_declaration name: (identifier) @any)
(local_function_statement name: (identifier) @any)
(class_declaration name: (identifier) @any)
(property_declaration name: (identifier) @any)
(variable_declarator name: (identifier) @local)
(parameter name: (identifier) @local)
""",
    ),
}
"""Grammars by language, as `CodeVersions.language` names it."""
