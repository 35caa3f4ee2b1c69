!a = tuple<!b>
!b = tuple<!a>
